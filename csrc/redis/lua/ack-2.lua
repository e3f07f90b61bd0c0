-- Acks a job that has a dedupe key, and frees the key.
--
-- KEYS: 1 stream, 2 dedupe
-- ARGV: 1 group, 2 entry, 3 job id, 4 dedupe key
-- Returns 1, or 0 when the delivery was given away; then nothing changed.
--
-- include: call
-- include: dedupe

local stream, dedupe = KEYS[1], KEYS[2]
local group, entry, id, key = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local owns = dedupe_owns(dedupe, key, id)
local deleted = call('XDEL', stream, entry)
call('XACK', stream, group, entry)
if deleted == 1 and owns then
    call('HDEL', dedupe, key)
end
return deleted
