-- include: call
-- Dedupe keys: field of the hash `dedupe` to "<job id> <entry id>", with - in place of the entry
-- while the job waits in `delay`. A job that carries a key owns it as long as the hash names its
-- id; a key that the hash does not have goes to the first that moves.
--
-- Both functions come before the job is written anew or removed, so that a user who may not write
-- the hash has changed nothing.

local function dedupe_names(value, id)
    return string.sub(value, 1, #id + 1) == id .. ' '
end

-- Whether a job that is written anew has to tell where; key may be nil. It holds what it held.
local function dedupe_hold(dedupe, key, id)
    local value = key and call('HGET', dedupe, key)
    if not key or (value and not dedupe_names(value, id)) then
        return false
    end
    call('HSET', dedupe, key, value or id .. ' -')
    return true
end

-- Whether a job that ends has to free its key; key may be nil.
local function dedupe_owns(dedupe, key, id)
    if not key then
        return false
    end
    call('HDEL', dedupe, '')
    local value = call('HGET', dedupe, key)
    return value and dedupe_names(value, id)
end
