-- Looks for a dead letter by its id, from the newest on.
--
-- KEYS: 1 dead, 2 deadbody
-- ARGV: 1 id, or the digest of an element without one, 2 1 for an id, 0 for a digest, 3 1 to read
--       the payload too, 4 the index at which to go on ("")
-- Returns four values for the letter (includes/letter.lua) and its payload, if asked for and kept;
-- {index} when it was not found yet: call again with it; {} when there is none.
--
-- It looks from the end down, so that letters that are removed meanwhile make it pass over none.
--
-- include: call
-- include: letter

local dead, deadbody = KEYS[1], KEYS[2]
local name, by_id, payload = ARGV[1], ARGV[2] == '1', ARGV[3] == '1'
local count = call('LLEN', dead)
local at, looked, bytes = math.min(tonumber(ARGV[4]) or count, count) - 1, 0, 0

local function is_it(element)
    if by_id then
        return has_id(element, name) and own_parts(element)
    end
    return redis.sha1hex(element) == name and not own_parts(element)
end

while at >= 0 do
    if looked >= LOOK or bytes > LOOK_BYTES then
        return {at + 1}
    end
    local chunk = call('LRANGE', dead, math.max(at - CHUNK + 1, 0), at)
    for i = #chunk, 1, -1 do
        if is_it(chunk[i]) then
            local told = {}
            tell(told, chunk[i], at, count, deadbody)
            if payload and by_id then
                told[5] = call('HGET', deadbody, name)
            end
            return told
        end
        bytes = bytes + #chunk[i]
        at = at - 1
    end
    looked = looked + #chunk
    if #chunk == 0 then
        break
    end
end
return {}
