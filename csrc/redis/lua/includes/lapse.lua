-- include: call
-- include: fields
-- include: dedupe
-- Makes the job of a lease that ran out ready again: a new entry with the attempt counted and the
-- name of who let it run out. An entry that was deleted while pending is only taken off the list.
-- Returns the bytes that were copied.

local function label(owner)
    owner = string.gsub(string.sub(owner, 1, 128), '[^!-~]', '?')
    if owner == '' then
        return '?'
    end
    return owner
end

local function lapse(stream, group, dedupe, entry, owner)
    call('XCLAIM', stream, group, owner, 0, entry, 'JUSTID')
    local found = call('XRANGE', stream, entry, entry)
    local bytes = 0
    if found[1] then
        local fields = found[1][2]
        local spent = field(fields, 'cwist-attempts') or '0'
        if not is_count(spent) then
            spent = '0'
        end
        local id, key = first_id(entry, fields), key_of(fields)
        local again = rewrite(fields, {
            ['cwist-id'] = id,
            ['cwist-attempts'] = string.format('%d', math.min(tonumber(spent) + 1, 1000000)),
            ['cwist-consumer'] = label(owner)
        })
        for _, value in ipairs(again) do
            bytes = bytes + #value
        end
        local held = dedupe_hold(dedupe, key, id)
        local new = call('XADD', stream, '*', unpack(again))
        if held then
            call('HSET', dedupe, key, id .. ' ' .. new)
        end
        call('XDEL', stream, entry)
    end
    call('XACK', stream, group, entry)
    return bytes
end
