-- What a field of ours must look like (docs/wire-format.md).

local function is_id(text)
    local time, sequence = string.match(text, '^(%d+)%-(%d+)$')
    return time ~= nil and #time <= 20 and #sequence <= 20
end

local function is_count(text)
    return #text <= 7 and string.match(text, '^%d+$') ~= nil and tonumber(text) <= 1000000
end

local function is_label(text)
    return #text <= 128 and string.match(text, '^[!-~]+$') ~= nil
end

-- Whoever claims the entry also looks whether it is UTF-8.
local function is_key(text)
    return #text >= 1 and #text <= 255
end

local OWN = {'cwist-id', 'cwist-attempts', 'cwist-consumer', 'cwist-key'}
local RULES = {
    ['cwist-id'] = is_id,
    ['cwist-attempts'] = is_count,
    ['cwist-consumer'] = is_label,
    ['cwist-key'] = is_key
}
