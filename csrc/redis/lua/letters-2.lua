-- Reads a page of dead letters.
--
-- KEYS: 1 dead, 2 deadbody
-- ARGV: 1 1 for oldest first, 0 for newest first, 2 how many at most, 3 the mark of the letter
--       behind which the page begins ("": none), 4 the index at which to go on looking, or ""
-- Returns {1, 1 when others follow, then four values for each letter: includes/letter.lua};
-- {0, index} when the mark was not found yet: call again with it; {-1} when the mark is none.
--
-- New letters join the list at its end, so a letter that was at an index is there now or lower.
-- From the index in the mark on it looks down for the first place that is not behind the mark's.
-- The letters that have no place are found by their digest; when that is gone too, some may be told
-- twice, and none is passed over.
--
-- include: call
-- include: letter

local dead, deadbody = KEYS[1], KEYS[2]
local oldest_first, most, mark, go_on = ARGV[1] == '1', tonumber(ARGV[2]), ARGV[3], ARGV[4]
local count = call('LLEN', dead)
local start = oldest_first and 0 or count - 1

local function read_mark()
    local name, index = string.match(mark, '^([0-9a-f-]+)%.(%d+)$')
    if not name or #index > 15 then
        return nil
    end
    local time, number = place_read(name)
    if not time and #name ~= 40 then
        return nil
    end
    return name, tonumber(index), time, number
end

if mark ~= '' then
    local name, index, mark_time, mark_number = read_mark()
    if not name then
        return {-1}
    end
    -- Where the page begins, when the element at `at` tells; else nil.
    local function judge(element, at)
        if not mark_time then
            if redis.sha1hex(element) == name then
                return oldest_first and at + 1 or at - 1
            end
            return nil
        end
        local time, number = place_read(place_text(element))
        if not time then
            return not oldest_first and at or nil
        end
        local same = time == mark_time and number == mark_number
        if time < mark_time or (time == mark_time and number < mark_number) then
            return oldest_first and at + 1 or at
        end
        return same and oldest_first and at + 1 or nil
    end
    local at, looked, bytes = math.min(tonumber(go_on) or index, count - 1), 0, 0
    local found
    while at >= 0 and not found do
        if looked >= LOOK or bytes > LOOK_BYTES then
            return {0, at}
        end
        local chunk = call('LRANGE', dead, math.max(at - CHUNK + 1, 0), at)
        for i = #chunk, 1, -1 do
            found = found or judge(chunk[i], at)
            bytes = bytes + #chunk[i]
            at = at - 1
        end
        looked = looked + #chunk
    end
    if found then
        start = found
    elseif oldest_first then
        start = 0
    else
        start = mark_time and -1 or math.min(index, count) - 1
    end
end

local told, taken, bytes = {1, 0}, 0, 0
while taken < most and bytes < LOOK_BYTES and start >= 0 and start < count do
    local size = math.min(CHUNK, most - taken)
    local first = oldest_first and start or math.max(start - size + 1, 0)
    local last = oldest_first and start + size - 1 or start
    local chunk = call('LRANGE', dead, first, last)
    for i = 1, #chunk do
        if bytes >= LOOK_BYTES then
            break
        end
        local place = oldest_first and i or #chunk + 1 - i
        tell(told, chunk[place], first + place - 1, count, deadbody)
        bytes = bytes + #chunk[place]
        taken = taken + 1
        start = start + (oldest_first and 1 or -1)
    end
end
told[2] = start >= 0 and start < count and 1 or 0
return told
