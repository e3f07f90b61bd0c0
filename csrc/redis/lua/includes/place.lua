-- include: call
-- include: pack
-- The place of a dead record in the list: the time of its death and, for all but the first of a
-- millisecond, a number: "<ms>" or "<ms>-<number>". Places grow along the list, also when the clock
-- goes back: then they go on from the last one.

-- Time and number of a place; nil when the text is none.
local function place_read(text)
    local time, number = string.match(text, '^(%d+)%-(%d+)$')
    time = time or string.match(text, '^%d+$')
    if not time or #time > 15 or #(number or '') > 15 then
        return nil
    end
    return tonumber(time), tonumber(number or '0')
end

-- The text of the place in a record of ours; '' for anything else.
local function place_text(record)
    local at, text = 2, ''
    if string.sub(record, 1, 1) ~= MARK then
        return ''
    end
    for _ = 1, 7 do
        if at + 3 > #record then
            return ''
        end
        local len = struct.unpack('>I4', record, at)
        text = string.sub(record, at + 4, at + 3 + len)
        at = at + 4 + len
    end
    return text
end

-- The place of a record that is appended now.
local function next_place(dead, now)
    local last = call('LRANGE', dead, -1, -1)
    local time, number
    if last[1] then
        time, number = place_read(place_text(last[1]))
    end
    if time and time >= now then
        return string.format('%.0f-%.0f', time, number + 1)
    end
    return string.format('%.0f', now)
end
