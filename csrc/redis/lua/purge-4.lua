-- Deletes a bounded piece of the jobs that were ready or delayed when the purge began, and frees
-- their dedupe keys. Claimed jobs stay: what is behind the last delivered entry is ready.
--
-- KEYS: 1 stream, 2 delay, 3 wait, 4 dedupe
-- ARGV: 1 group, 2 where it began: the highest id of a job that it may delete ("" the first time)
-- Returns {that id, how many were deleted, 1 when there is more to do}
--
-- The delayed ones come first, in the order of their times, before they come due.
--
-- include: call
-- include: fields
-- include: pack
-- include: group
-- include: probe
-- include: dedupe
-- include: due

local stream, delay, wait, dedupe = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local group, bound = ARGV[1], ARGV[2]
local MOST, BYTES = 1000, 8388608
local deleted, bytes = 0, 0

if call('XLEN', stream) == 0 and call('ZCARD', delay) == 0 then
    return {'0-0', 0, 0}
end
probe(stream, group)
probe_delay(delay, wait)
if bound == '' then
    bound = call('XADD', stream, '*', 'cwist-id', '-')
    call('XDEL', stream, bound)
end

local function parts_of(id)
    local time, sequence = string.match(id, '^(%d+)%-(%d+)$')
    return tonumber(time), tonumber(sequence)
end

local bound_time, bound_sequence = parts_of(bound)

-- Whether the job was there when the purge began.
local function was_there(member)
    if not is_id(member) then
        return true
    end
    local time, sequence = parts_of(member)
    return time < bound_time or (time == bound_time and sequence <= bound_sequence)
end

local function free(fields, id)
    local key = key_of(fields)
    if dedupe_owns(dedupe, key, id) then
        call('HDEL', dedupe, key)
    end
    for _, value in ipairs(fields) do
        bytes = bytes + #value
    end
end

local function full()
    return deleted >= MOST or bytes > BYTES
end

local from = 0
while not full() do
    local members = call('ZRANGE', delay, from, from + 99)
    if not members[1] then
        break
    end
    for _, member in ipairs(members) do
        if full() then
            break
        elseif was_there(member) then
            free(due_fields(wait, member) or {}, member)
            call('HDEL', wait, member)
            call('ZREM', delay, member)
            deleted = deleted + 1
        else
            from = from + 1
        end
    end
end

local info = group_info(stream, group)
local behind, size = info and info['last-delivered-id'] or '0-0', 1
local more = full()
while not full() do
    local found = call('XRANGE', stream, '(' .. behind, bound, 'COUNT', size)
    local ids = {}
    for i, entry in ipairs(found) do
        ids[i] = entry[1]
        free(entry[2], first_id(entry[1], entry[2]))
    end
    if ids[1] then
        behind = ids[#ids]
        deleted = deleted + call('XDEL', stream, unpack(ids))
    end
    if #found < size then
        return {bound, deleted, 0}
    end
    -- More at once while they are small.
    size = bytes < 65536 * size and math.min(size * 2, 128) or size
    more = full()
end
return {bound, deleted, more and 1 or 0}
