-- include: call
-- Writes that change nothing and need no memory. They come before anything else is written: after
-- them the server lets the other writes pass even when it is full, and a user who may not run the
-- last commands of a script has changed nothing. Without that, a copy would be made and the
-- original could not be removed.

local function probe(stream, group)
    call('XACK', stream, group, '0-0')
    call('XDEL', stream, '0-0')
end

local function probe_delay(delay, wait)
    call('ZREM', delay, '0-0')
    call('HDEL', wait, '0-0')
end
