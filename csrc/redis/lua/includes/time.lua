-- include: call
-- The server's clock in milliseconds since 1970.

local function now_ms()
    local time = call('TIME')
    return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
