-- Takes back what has expired, makes due tasks waiting, and forgets finished tasks beyond what is kept.
-- USES clock, queue, queue-lanes, queue-ends, queue-refresh, queue-forget
-- KEYS base
-- ARGV clock, fleet
-- FLAGS allow-oom
-- ->   {claims taken back, expired tasks, forgotten tasks, 1 where there was more than one step should do}
q.open(KEYS[1], now_us(), ARGV[2])

local reclaimed, expired = q.refresh()
local forgotten = q.forget_old()
q.forget_windows()
q.forget_schedules()
q.close()
return { reclaimed, expired, forgotten, q.more and 1 or 0 }
