-- Forgets keys whose windows are all free again.
-- USES clock, limit
-- KEYS base
-- ARGV clock, n
-- FLAGS allow-oom
-- ->   how many; `n` at most
return limit_forget(KEYS[1], now_us(), ARGV[2])
