-- include: call
-- include: rules
-- include: pack
-- include: place
-- Elements of the list `dead`: our records and those of older clients. These have no id and no
-- place in time; they are named by their digest.

-- How much one call of a script looks at.
local LOOK, LOOK_BYTES, CHUNK = 1000, 8388608, 100

-- The parts of a record of ours, from the id on; nil when it is none.
local function own_parts(element)
    local parts = string.sub(element, 1, 1) == MARK and unpack_all(element, 2)
    if not parts or #parts < 8 or #parts % 2 ~= 0 or #parts > 7000 or not is_id(parts[1]) then
        return nil
    end
    return parts
end

-- Whether a record begins with that id, without reading the rest.
local function has_id(element, id)
    return string.sub(element, 1, 5 + #id) == MARK .. struct.pack('>I4', #id) .. id
end

-- What is told of the element at an index: itself; the mark that stands for it; the length of its
-- payload or, when it is not ours, its digest; and from which end of the list it is nearer (1, -1).
local function tell(told, element, index, count, deadbody)
    local parts = own_parts(element)
    local place = parts and parts[7] or ''
    local digest = redis.sha1hex(element)
    told[#told + 1] = element
    told[#told + 1] = (place_read(place) and place or digest) .. '.' .. index
    told[#told + 1] = parts and call('HSTRLEN', deadbody, parts[1]) or digest
    told[#told + 1] = index < count / 2 and 1 or -1
end
