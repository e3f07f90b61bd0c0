-- Moves a dead letter back into the queue, where its attempts start again.
--
-- KEYS: 1 stream, 2 delay, 3 dead, 4 deadbody
-- ARGV: 1 the element of the list, 2 1 or -1: the end to look from, 3 how many jobs the queue may
--       hold (0: no limit)
-- Returns 1; 0 when the letter is not there any more, -1 when the queue is full; then nothing
-- changed.
--
-- The new entry is written first and taken back when the letter turns out to be gone: nobody sees
-- it in between. So what stops the script (a right that is missing) loses nothing. A full server
-- lets it pass, behind the first deletion: what is moved takes no more memory.
--
-- include: call
-- include: fields
-- include: letter
-- include: older

local stream, delay, dead, deadbody = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local element, side, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])

if limit > 0 and call('XLEN', stream) + call('ZCARD', delay) >= limit then
    return -1
end

-- The fields of the new entry. What has no known shape becomes a malformed job.
local function fields_of(parts)
    if not parts then
        local kind, _, payload = older_parts(element)
        if not kind then
            return {'cwist-dead', element}
        end
        return {'type', kind, 'payload', payload}
    end
    local fields, raw_type = {}, false
    for i = 9, #parts, 2 do
        raw_type = raw_type or parts[i] == 'type'
    end
    if not raw_type then
        fields = {'type', parts[2]}
    end
    local payload = call('HGET', deadbody, parts[1])
    if payload then
        fields[#fields + 1] = 'payload'
        fields[#fields + 1] = payload
    end
    fields[#fields + 1] = 'cwist-id'
    fields[#fields + 1] = parts[1]
    for i = 9, #parts, 2 do
        if not RULES[parts[i]] then
            fields[#fields + 1] = parts[i]
            fields[#fields + 1] = parts[i + 1]
        end
    end
    return fields
end

local parts = own_parts(element)
call('XDEL', stream, '0-0')
call('HDEL', deadbody, '')
local entry = call('XADD', stream, '*', unpack(fields_of(parts)))
local removed = redis.pcall('LREM', dead, side, element)
if removed ~= 1 then
    call('XDEL', stream, entry)
    if type(removed) == 'table' then
        refuse('LREM', removed)
    end
    return 0
end
if parts then
    call('HDEL', deadbody, parts[1])
end
return 1
