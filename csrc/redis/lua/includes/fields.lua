-- include: rules
-- Stream entries as flat lists of names and values. When a name comes twice, the first counts.

-- Lua hands at most some 8000 values to a command. An entry with more than 3000 fields beside ours
-- is malformed; it is cut here to one more than that, and so stays malformed.
local OTHERS_KEPT = 3001

local function field(fields, name)
    for i = 1, #fields, 2 do
        if fields[i] == name then
            return fields[i + 1]
        end
    end
    return nil
end

local function first_id(entry, fields)
    local id = field(fields, 'cwist-id')
    if id and is_id(id) then
        return id
    end
    return entry
end

-- The dedupe key; nil when there is none or it breaks its rule.
local function key_of(fields)
    local key = field(fields, 'cwist-key')
    return key and is_key(key) and key or nil
end

-- The fields with our own ones set to those in `own`, right behind the payload. One of ours that
-- breaks its rule is kept, so that whoever claims the entry still sees that it is malformed. The
-- dedupe key goes with the job.
local function rewrite(fields, own)
    local out, placed = {}, false
    local function put(name, value)
        out[#out + 1] = name
        out[#out + 1] = value
    end
    local function place()
        for _, name in ipairs(OWN) do
            local old = field(fields, name)
            if old and (name == 'cwist-key' or not RULES[name](old)) then
                put(name, old)
            elseif own[name] then
                put(name, own[name])
            end
        end
        placed = true
    end
    local others = 0
    for i = 1, #fields, 2 do
        if not RULES[fields[i]] and others < OTHERS_KEPT then
            put(fields[i], fields[i + 1])
            others = others + 1
        end
        if fields[i] == 'payload' and not placed then
            place()
        end
    end
    if not placed then
        place()
    end
    return out
end
