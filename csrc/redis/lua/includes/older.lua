-- What older clients leave in `delay` and `dead`: type length and attempts (4 bytes each,
-- big-endian), type, payload. Returns type, attempts and payload; nil for another shape.

local function older_parts(text)
    if #text < 8 then
        return nil
    end
    local len, attempts = struct.unpack('>I4I4', text)
    if #text < 8 + len then
        return nil
    end
    return string.sub(text, 9, 8 + len), attempts, string.sub(text, 9 + len)
end
