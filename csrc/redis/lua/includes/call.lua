-- redis.call() with an error that names the command: the server leaves that out when the user may
-- not run it. The client looks for the word `cwist` (reply.c).

local function refuse(name, answer)
    error('cwist ' .. name .. ': ' .. answer.err, 0)
end

local function call(name, ...)
    local answer = redis.pcall(name, ...)
    if type(answer) == 'table' and answer.err then
        refuse(name, answer)
    end
    return answer
end
