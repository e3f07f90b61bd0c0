-- include: call
-- include: probe
-- Proves that a delivery is still the caller's. The fence is a write that needs no memory.
-- Returns the fields of the entry, or nil when the delivery was given away.

local function fence(stream, group, consumer, entry)
    local held = redis.pcall('XCLAIM', stream, group, consumer, 0, entry, 'JUSTID')
    if held.err then
        if string.find(held.err, 'NOGROUP', 1, true) then
            return nil
        end
        refuse('XCLAIM', held)
    end
    if #held == 0 then
        return nil
    end
    local found = call('XRANGE', stream, entry, entry)
    if not found[1] then
        call('XACK', stream, group, entry)
        return nil
    end
    probe(stream, group)
    return found[1][2]
end
