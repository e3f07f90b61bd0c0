-- Counts what a queue holds; changes nothing.
--
-- KEYS: 1 stream, 2 delay, 3 dead, 4 conf
-- ARGV: 1 group
-- Returns {ready, claimed, delayed, dead, age in ms of the job that is ready longest (0: none is),
--          consumers, 1 when claims are paused}
--
-- An entry is made when its job becomes ready, so its own id tells since when.
--
-- include: call
-- include: group
-- include: time

local stream, delay, dead, conf = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local info = group_info(stream, ARGV[1]) or {}
local claimed = info.pending or 0
local ready = math.max(call('XLEN', stream) - claimed, 0)
local age = 0
if ready > 0 then
    local from = info['last-delivered-id'] or '0-0'
    local first = call('XRANGE', stream, '(' .. from, '+', 'COUNT', 1)
    if first[1] then
        age = math.max(now_ms() - tonumber(string.match(first[1][1], '^%d+')), 1)
    end
end
return {
    ready, claimed, call('ZCARD', delay), call('LLEN', dead), age, info.consumers or 0,
    call('HGET', conf, 'paused') and 1 or 0
}
