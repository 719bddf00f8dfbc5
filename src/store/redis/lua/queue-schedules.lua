-- All schedules of a queue.
-- USES clock
-- KEYS base
-- ARGV clock
-- ->   {now, schedules as id, value, …}
return { int(now_ms()), redis.call("HGETALL", KEYS[1] .. "schedules") }
