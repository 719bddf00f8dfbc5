-- Leaves a wish for refilling, with the time: `pool-sweep.lua` forgets those that were not left again for long.
-- USES clock
-- KEYS base
-- ARGV clock, where, refill
-- FLAGS allow-oom
-- ->   1 where it is new
local base, where = KEYS[1], ARGV[2]
redis.call("ZADD", base .. "left", int(now_ms()), where)
return redis.call("HSET", base .. "refills", where, ARGV[3])
