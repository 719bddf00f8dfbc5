-- Forgets a key of a counter's name.
-- KEYS values
-- ARGV key
-- FLAGS allow-oom
-- ->   "removed" | "unknown"
redis.call("ZREM", KEYS[1] .. ":keys", ARGV[1])
return redis.call("HDEL", KEYS[1], ARGV[1]) == 1 and "removed" or "unknown"
