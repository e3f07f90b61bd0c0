-- Pauses the claims of a queue, or lets them go on.
--
-- KEYS: 1 conf
-- ARGV: 1 1 to pause, 0 to go on
-- Returns 1.
--
-- include: call

local version = call('HGET', KEYS[1], 'version')
if version and version ~= '1' then
    return redis.error_reply('ERR the queue is kept in the unknown wire format ' .. version)
end
if ARGV[1] == '1' then
    call('HSET', KEYS[1], 'version', '1', 'paused', '1')
else
    call('HDEL', KEYS[1], 'paused')
end
return 1
