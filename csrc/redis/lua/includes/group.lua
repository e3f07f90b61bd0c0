-- include: call
-- What the server tells of a group of a stream, by name; nil when there is none.

local function group_info(stream, group)
    local groups = redis.pcall('XINFO', 'GROUPS', stream)
    if groups.err then
        if string.find(groups.err, 'no such key', 1, true) then
            return nil
        end
        refuse('XINFO', groups)
    end
    for _, pairs_of in ipairs(groups) do
        local info = {}
        for i = 1, #pairs_of, 2 do
            info[pairs_of[i]] = pairs_of[i + 1]
        end
        if info.name == group then
            return info
        end
    end
    return nil
end
