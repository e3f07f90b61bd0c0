-- Ends a delivery by moving its job to the dead letters.
--
-- KEYS: 1 stream, 2 dead, 3 deadbody, 4 dedupe
-- ARGV: 1 group, 2 consumer, 3 entry, 4 attempts, 5 cause, 6 reason, 7 job id, 8 type
-- Returns 1, or 0 when the delivery was given away; then nothing changed.
--
-- The body comes before the record: a cut in between (a denied command) leaves the job pending, and
-- the repeat writes the same body again and the record once.
--
-- include: call
-- include: fields
-- include: pack
-- include: time
-- include: fence
-- include: dedupe
-- include: place

local stream, dead, deadbody, dedupe = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local group, consumer, entry, attempts = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local cause, reason, id, kind = ARGV[5], ARGV[6], ARGV[7], ARGV[8]

local fields = fence(stream, group, consumer, entry)
if not fields then
    return 0
end

local key = key_of(fields)
local owns = dedupe_owns(dedupe, key, id)
local last_consumer = consumer
if cause == 'lease-expired' then
    last_consumer = field(fields, 'cwist-consumer') or consumer
end
local first_time = string.match(id, '^%d+') or '0'
local record = {
    id, kind, attempts, cause, reason, first_time, next_place(dead, now_ms()), last_consumer
}

-- What the record tells by itself is left out, once; a malformed entry keeps all it has.
local told = {payload = true}
if cause ~= 'malformed' then
    told['type'] = true
    for _, name in ipairs(OWN) do
        told[name] = true
    end
end
for i = 1, #fields, 2 do
    if told[fields[i]] then
        told[fields[i]] = nil
    else
        record[#record + 1] = fields[i]
        record[#record + 1] = fields[i + 1]
    end
end

local payload = field(fields, 'payload')
if payload then
    call('HSET', deadbody, id, payload)
end
call('RPUSH', dead, MARK .. pack(record))
call('XDEL', stream, entry)
call('XACK', stream, group, entry)
if owns then
    call('HDEL', dedupe, key)
end
return 1
