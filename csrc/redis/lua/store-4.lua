-- Stores jobs, all or none: those with a dedupe key, a delay or a limit on the queue's length, and
-- batches of all or none.
--
-- KEYS: 1 stream, 2 delay, 3 wait, 4 dedupe
-- ARGV: 1 how many jobs the queue may hold (0: no limit); then for each job: delay in ms, dedupe
--       key ("": none), how many names and values of fields follow, and these
-- Returns for each job its id and 0, or the id of the job that has the key and 1; or the number 0
-- when the queue is full: then nothing was stored.
--
-- Writes that change nothing come first. Behind them and the first XADD nothing fails any more: a
-- server that is full, a user without a right and a key of another type stop the script before
-- anything was stored.
--
-- include: call
-- include: fields
-- include: pack
-- include: time

local stream, delay, wait, dedupe = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local limit = tonumber(ARGV[1])

-- The live job that has a key; nil when there is none.
local function holder(key)
    local value = call('HGET', dedupe, key)
    local id, entry = string.match(value or '', '^(%S+) (%S+)$')
    if not id then
        return nil
    end
    if entry == '-' then
        local waits = call('ZSCORE', delay, id) and call('HEXISTS', wait, id) == 1
        return waits and id or nil
    end
    local found = is_id(entry) and call('XRANGE', stream, entry, entry) or {}
    if found[1] and field(found[1][2], 'cwist-key') == key then
        return id
    end
    return nil
end

-- Reads the jobs; those whose key is taken, also by one before them, have `twin`.
local jobs, fresh, delayed, new_key, owners = {}, 0, false, nil, {}
local at = 2
while at <= #ARGV do
    local job = {delay = tonumber(ARGV[at]), key = ARGV[at + 1], from = at + 3}
    job.to = at + 2 + tonumber(ARGV[at + 2])
    at = job.to + 1
    jobs[#jobs + 1] = job
    if job.key ~= '' then
        job.twin = owners[job.key] or holder(job.key)
        owners[job.key] = job.twin or job
    end
    if not job.twin then
        fresh = fresh + 1
        delayed = delayed or job.delay > 0
        new_key = new_key or (job.key ~= '' and job.key)
    end
end
if limit > 0 and fresh > 0 and call('XLEN', stream) + call('ZCARD', delay) + fresh > limit then
    return 0
end

-- The first of these must be one that a full server refuses.
if delayed then
    call('ZADD', delay, 'XX', 0, '')
    call('HDEL', wait, '')
    call('HSET', wait, '', '')
    call('HDEL', wait, '')
    call('XDEL', stream, '0-0')
end
if new_key then
    call('HSET', dedupe, new_key, '-') -- until the job is stored; it names none
end
local now = delayed and now_ms()

for _, job in ipairs(jobs) do
    if job.twin then
        job.id = type(job.twin) == 'table' and job.twin.id or job.twin
    elseif job.delay > 0 then
        -- The id is one of the stream's, so that it is no other job's.
        job.id = call('XADD', stream, '*', 'cwist-id', '-')
        call('XDEL', stream, job.id)
        local body = rewrite({unpack(ARGV, job.from, job.to)}, {['cwist-id'] = job.id})
        call('HSET', wait, job.id, MARK .. pack(body))
        call('ZADD', delay, string.format('%.0f', now + job.delay), job.id)
    else
        job.id = call('XADD', stream, '*', unpack(ARGV, job.from, job.to))
    end
    if job.key ~= '' and not job.twin then
        call('HSET', dedupe, job.key, job.id .. ' ' .. (job.delay > 0 and '-' or job.id))
    end
end

local told = {}
for _, job in ipairs(jobs) do
    told[#told + 1] = job.id
    told[#told + 1] = job.twin and 1 or 0
end
return told
