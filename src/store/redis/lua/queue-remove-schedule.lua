-- Removes a schedule. Its last tick is remembered for a while: somebody may still be about to submit it.
-- USES clock
-- KEYS base
-- ARGV clock, id
-- ->   "removed" | "unknown"
local base, id = KEYS[1], ARGV[2]

if redis.call("HDEL", base .. "schedules", id) == 0 then return "unknown" end
redis.call("ZADD", base .. "removed", int(now_ms()), id)
return "removed"
