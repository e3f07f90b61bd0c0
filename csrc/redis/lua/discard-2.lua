-- Deletes a dead letter for good.
--
-- KEYS: 1 dead, 2 deadbody
-- ARGV: 1 the element of the list, 2 1 or -1: the end to look from
-- Returns 1, or 0 when the letter is not there any more.
--
-- include: call
-- include: letter

local dead, deadbody = KEYS[1], KEYS[2]
local element, side = ARGV[1], ARGV[2]

call('HDEL', deadbody, '')
local removed = call('LREM', dead, side, element)
local parts = removed == 1 and own_parts(element)
if parts then
    call('HDEL', deadbody, parts[1])
end
return removed
