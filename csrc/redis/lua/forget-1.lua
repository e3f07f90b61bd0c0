-- Takes a consumer off the group when nothing is pending for it. With something pending the
-- deletion would take the jobs off the pending list too, and nobody would see them again.
--
-- KEYS: 1 stream
-- ARGV: 1 group, 2 consumer
-- Returns 1 when it was removed, else 0.
--
-- include: call

local stream, group, consumer = KEYS[1], ARGV[1], ARGV[2]

local pending = redis.pcall('XPENDING', stream, group, '-', '+', 1, consumer)
if pending.err or #pending > 0 then
    return 0
end
call('XGROUP', 'DELCONSUMER', stream, group, consumer)
return 1
