-- Stores jobs, all or none. Only the first XADD can fail: a server that is full, a user without the
-- right and a key of another type stop it before anything was written, and after it the server lets
-- the others pass.
--
-- KEYS: 1 stream
-- ARGV: type and payload of each job in turn
-- Returns the ids in order.
--
-- include: call

local ids = {}
for at = 1, #ARGV, 2 do
    ids[#ids + 1] = call('XADD', KEYS[1], '*', 'type', ARGV[at], 'payload', ARGV[at + 1])
end
return ids
