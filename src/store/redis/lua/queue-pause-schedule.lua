-- Pauses a schedule or lets it go on.
-- USES clock, queue
-- KEYS base
-- ARGV clock, fleet, id, paused
-- ->   "done" | "unknown"
local fleet, id, paused = ARGV[2], ARGV[3], ARGV[4]
open(KEYS[1], now_us())

local stored = call("HGET", base .. "schedules", id)
if not stored then return "unknown" end
local since, was_paused, rest = string.match(stored, "^%d+ (%d+) (%d)( .*)$")
if was_paused == paused then return "done" end
call("HSET", base .. "schedules", id, new_token() .. " " .. since .. " " .. paused .. rest)
close(fleet)
return "done"
