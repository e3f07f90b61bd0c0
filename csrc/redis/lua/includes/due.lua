-- include: call
-- include: rules
-- include: pack
-- include: older
-- The fields to write for a member of `delay` that is due; nil for one of ours without a body.
-- What has no shape that we know becomes an entry without payload: whoever claims it finds it
-- malformed and moves it to the dead letters, so it neither vanishes nor blocks the others.

local function older_fields(member)
    local kind, spent, payload = older_parts(member)
    if not kind then
        return nil
    end
    local fields = {'type', kind, 'payload', payload}
    if spent > 0 then
        fields[5] = 'cwist-attempts'
        fields[6] = string.format('%d', math.min(spent, 1000000))
    end
    return fields
end

local function due_fields(wait, member)
    if not is_id(member) then
        return older_fields(member) or {'cwist-delay', member}
    end
    local body = call('HGET', wait, member)
    if not body then
        return nil
    end
    local fields = string.sub(body, 1, 1) == MARK and unpack_all(body, 2)
    if not fields or #fields == 0 or #fields % 2 ~= 0 or #fields > 7000 then
        return {'cwist-wait', body}
    end
    return fields
end
