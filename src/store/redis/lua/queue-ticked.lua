-- Notes the last tick of a schedule that was decided on, if the schedule is still that of the revision.
-- KEYS base
-- ARGV id, tick, revision
-- FLAGS allow-oom
-- ->   "noted" | "ignored"
local schedules, id, tick = KEYS[1] .. "schedules", ARGV[1], ARGV[2]

local stored = redis.call("HGET", schedules, id)
local head, last, rest = string.match(stored or "", "^(%d+ %d+ %d) (%S+)(\n.*)$")
if not head or string.match(head, "^%d+") ~= ARGV[3] then return "ignored" end
if last ~= "-" and tonumber(last) >= tonumber(tick) then return "ignored" end
redis.call("HSET", schedules, id, head .. " " .. tick .. rest)
return "noted"
