-- Recovery: makes due and lapsed jobs ready again, a bounded piece at a time. Everybody may run it
-- at any moment; what one run has moved the next does not find.
--
-- KEYS: 1 stream, 2 delay, 3 wait, 4 conf, 5 dedupe
-- ARGV: 1 group, 2 visibility that the caller asks for (0: a producer, who changes no setting and
--       makes nothing), 3 1 to settle the visibility (the first claim of a handle), 4 cursor ("")
-- Returns {1 when there is more to do at once, ms until the next job is due or lapses (-1: none
--          seen), next cursor, visibility in force (0: none yet), visibility before when this call
--          replaced it (else 0), jobs moved, 1 when claims are paused}
-- or the error NOGROUP, for a claimer only.
--
-- The pending list is in the order of delivery, which is the order of lease ends but for extended
-- leases: so its head is looked at always, and the rest along a cursor that passes over those.
--
-- include: call
-- include: probe
-- include: lapse
-- include: due
-- include: time

local stream, delay, wait, conf, dedupe = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local group, asked, settle, cursor = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4]
local DUE, HEAD, ALONG, BYTES = 100, 16, 100, 8388608
local bytes, moved, more, hint, started = 0, 0, false, -1, false

local function begin()
    if not started then
        probe(stream, group)
        started = true
    end
end

local function wake_in(ms)
    ms = math.max(ms, 0)
    if hint < 0 or ms < hint then
        hint = ms
    end
end

-- Brings back those of the pending that lapsed; returns how many it dealt with.
local function sweep(pending, visibility)
    local lapsed = 0
    for _, item in ipairs(pending) do
        if item[3] < visibility then
            wake_in(visibility - item[3])
        elseif bytes > BYTES then
            more = true
        else
            begin()
            bytes = bytes + lapse(stream, group, dedupe, item[1], item[2])
            lapsed = lapsed + 1
        end
    end
    moved = moved + lapsed
    return lapsed
end

local head = redis.pcall('XPENDING', stream, group, '-', '+', HEAD)
if head.err then
    if not string.find(head.err, 'NOGROUP', 1, true) then
        refuse('XPENDING', head)
    end
    if asked > 0 then
        return head
    end
    head = {}
end

local stored = call('HMGET', conf, 'version', 'visibility', 'paused')
if stored[1] and stored[1] ~= '1' then
    return redis.error_reply('ERR the queue is kept in the unknown wire format ' .. stored[1])
end
local visibility, before = tonumber(stored[2] or ''), 0
if visibility and not (visibility >= 1 and visibility <= 604800000) then -- nan is refused too
    visibility = nil
end
if asked > 0 and (not visibility or (settle and visibility ~= asked)) then
    begin()
    call('HSET', conf, 'version', '1', 'visibility', ARGV[2])
    before = visibility or 0
    visibility = asked
end

local now = now_ms()
local due = call('ZRANGEBYSCORE', delay, '-inf', string.format('%.0f', now), 'LIMIT', 0, DUE)
if due[1] then
    begin()
    probe_delay(delay, wait)
end
for _, member in ipairs(due) do
    if bytes > BYTES then
        break
    end
    local fields = due_fields(wait, member)
    if fields then
        for _, value in ipairs(fields) do
            bytes = bytes + #value
        end
        local key = key_of(fields)
        local held = dedupe_hold(dedupe, key, member)
        local new = call('XADD', stream, '*', unpack(fields))
        if held then
            call('HSET', dedupe, key, member .. ' ' .. new)
        end
        moved = moved + 1
    end
    call('HDEL', wait, member)
    call('ZREM', delay, member)
end
local next_due = call('ZRANGE', delay, 0, 0, 'WITHSCORES')
if next_due[1] then
    local score = tonumber(next_due[2])
    more = more or score <= now
    wake_in(score - now)
end

if visibility then
    local lapsed = sweep(head, visibility)
    if #head == HEAD then
        local from = head[HEAD][1]
        if lapsed < HEAD and cursor ~= '' then
            from = cursor
        end
        local along = call('XPENDING', stream, group, '(' .. from, '+', ALONG)
        if sweep(along, visibility) == ALONG and lapsed == HEAD then
            more = true
        end
        cursor = #along == ALONG and along[ALONG][1] or ''
    else
        cursor = ''
    end
end
return {more and 1 or 0, math.ceil(hint), cursor, visibility or 0, before, moved,
    stored[3] and 1 or 0}
