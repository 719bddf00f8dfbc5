-- Takes back what has expired, makes due tasks waiting, and forgets finished tasks beyond what is kept.
-- USES clock, queue, queue-lanes, queue-ends, queue-refresh, queue-forget
-- KEYS base
-- ARGV clock, fleet
-- ->   {claims taken back, expired tasks, forgotten tasks, 1 where there was more than one step should do}
local fleet = ARGV[2]
open(KEYS[1], now_us())

local reclaimed, expired = refresh(fleet)
local forgotten = forget_old()
forget_windows()
close(fleet)
return { reclaimed, expired, forgotten, more and 1 or 0 }
