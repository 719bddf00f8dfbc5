-- Stores a schedule. What did not change is left as it is; ticks count anew where its timing changed.
-- USES clock, queue
-- KEYS base
-- ARGV clock, fleet, id, timing, spec
-- FLAGS allow-oom
-- ->   the schedule as it is stored
--
-- A schedule is stored as `<revision> <since> <1 where paused> <last tick or ->`, its timing and its spec, a line for each.
local id, timing, spec = ARGV[3], ARGV[4], ARGV[5]
q.open(KEYS[1], now_us(), ARGV[2])

local stored = call("HGET", q.base .. "schedules", id)
local since, paused, last = q.stamp, "0", "-"
if stored then
  local was_since, was_paused, was_last, was_timing, was_spec = string.match(stored, "^%d+ (%d+) (%d) (%S+)\n([^\n]*)\n(.*)$")
  if was_spec == spec then return stored end
  -- One that cannot be read begins anew.
  paused = was_paused or paused
  if was_timing == timing then since, last = was_since, was_last end
end
stored = table.concat({ q.new_token(), since, paused, last }, " ") .. "\n" .. timing .. "\n" .. spec
call("HSET", q.base .. "schedules", id, stored)
call("ZREM", q.base .. "removed", id)
q.close()
return stored
