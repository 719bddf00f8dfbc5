-- One task; marks it, where somebody wants to be told of its end.
-- USES queue-record
-- KEYS base
-- ARGV id, ask
-- ->   the task, see `queue-record.lua`, or nil
local base, id = KEYS[1], ARGV[1]

local task = record_of(base, id)
if task and ARGV[2] == "1" and string.find("wsa", task[4], 1, true) then
  redis.call("HSET", base .. "task:" .. id, "q", "1")
end
return task
