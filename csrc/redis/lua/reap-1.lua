-- Takes consumers off the group that were left behind: nothing pending and silent for long. One
-- that still lives is made again by its next delivery.
--
-- KEYS: 1 stream
-- ARGV: 1 group, 2 silence in ms, 3 how many to remove at most
-- Returns how many were removed.
--
-- include: call

local stream, group = KEYS[1], ARGV[1]
local silence, limit = tonumber(ARGV[2]), tonumber(ARGV[3])

local consumers = redis.pcall('XINFO', 'CONSUMERS', stream, group)
if consumers.err then
    return 0
end
local removed = 0
for _, pairs_of in ipairs(consumers) do
    local info = {}
    for i = 1, #pairs_of, 2 do
        info[pairs_of[i]] = pairs_of[i + 1]
    end
    if removed < limit and info.pending == 0 and info.idle > silence then
        call('XGROUP', 'DELCONSUMER', stream, group, info.name)
        removed = removed + 1
    end
end
return removed
