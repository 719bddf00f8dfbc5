-- Stores a schedule. What did not change is left as it is; ticks count anew where its timing changed.
-- USES clock, queue
-- KEYS base
-- ARGV clock, fleet, id, timing, spec
-- ->   the schedule as it is stored
--
-- A schedule is stored as `<revision> <since> <1 where paused> <last tick or ->`, its timing and its spec, a line for each.
local fleet, id, timing, spec = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
open(KEYS[1], now_us())

local stored = call("HGET", base .. "schedules", id)
local since, paused, last = stamp, "0", "-"
if stored then
  local was_since, was_paused, was_last, was_timing, was_spec = string.match(stored, "^%d+ (%d+) (%d) (%S+)\n([^\n]*)\n(.*)$")
  if was_spec == spec then return stored end
  paused = was_paused
  if was_timing == timing then since, last = was_since, was_last end
end
stored = table.concat({ new_token(), since, paused, last }, " ") .. "\n" .. timing .. "\n" .. spec
call("HSET", base .. "schedules", id, stored)
close(fleet)
return stored
