-- Pauses a schedule or lets it go on.
-- USES clock, queue
-- KEYS base
-- ARGV clock, fleet, id, paused
-- FLAGS allow-oom
-- ->   "done" | "unknown"
local id, paused = ARGV[3], ARGV[4]
q.open(KEYS[1], now_us(), ARGV[2])

local stored = call("HGET", q.base .. "schedules", id)
if not stored then return "unknown" end
local since, was_paused, rest = string.match(stored, "^%d+ (%d+) (%d)( .*)$")
if not rest then return "unknown" end
if was_paused == paused then return "done" end
-- What passed while it was paused is nobody's miss.
if paused == "0" then since = q.stamp end
call("HSET", q.base .. "schedules", id, q.new_token() .. " " .. since .. " " .. paused .. rest)
q.close()
return "done"
