-- Packed strings: a length of four bytes, big-endian, then the bytes.

local MARK = '\193'

local function pack(values)
    local out = {}
    for i, value in ipairs(values) do
        out[2 * i - 1] = struct.pack('>I4', #value)
        out[2 * i] = value
    end
    return table.concat(out)
end

-- The strings packed in text from position at on; nil when it is not whole.
local function unpack_all(text, at)
    local out = {}
    while at <= #text do
        if at + 3 > #text then
            return nil
        end
        local len = struct.unpack('>I4', text, at)
        if at + 3 + len > #text then
            return nil
        end
        out[#out + 1] = string.sub(text, at + 4, at + 3 + len)
        at = at + 4 + len
    end
    return out
end
