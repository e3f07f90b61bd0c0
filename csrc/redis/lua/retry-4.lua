-- Ends a delivery by making its job ready again, now or later. Serves retry and release.
--
-- KEYS: 1 stream, 2 delay, 3 wait, 4 dedupe
-- ARGV: 1 group, 2 consumer, 3 entry, 4 attempts spent so far, 5 wait in ms (0: ready now),
--       6 1 when this delivery counts, 0 when it is handed back as if it had not been
-- Returns 1, or 0 when the delivery was given away; then nothing changed.
--
-- include: call
-- include: fields
-- include: pack
-- include: time
-- include: fence
-- include: dedupe

local stream, delay, wait, dedupe = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local group, consumer, entry, attempts = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local pause, counts = tonumber(ARGV[5]), ARGV[6] == '1'

local fields = fence(stream, group, consumer, entry)
if not fields then
    return 0
end

local id, key, new = first_id(entry, fields), key_of(fields), '-'
local own = {['cwist-id'] = id, ['cwist-attempts'] = attempts}
if not counts then
    own['cwist-consumer'] = field(fields, 'cwist-consumer')
end
local again = rewrite(fields, own)

local held = dedupe_hold(dedupe, key, id)
if pause == 0 then
    new = call('XADD', stream, '*', unpack(again))
else
    call('ZADD', delay, 'XX', 0, '') -- changes nothing: whoever may not leaves no body behind
    call('HSET', wait, id, MARK .. pack(again))
    call('ZADD', delay, string.format('%.0f', now_ms() + pause), id)
end
if held then
    call('HSET', dedupe, key, id .. ' ' .. new)
end
call('XDEL', stream, entry)
call('XACK', stream, group, entry)
return 1
