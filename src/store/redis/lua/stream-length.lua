-- Counts the entries that have not expired.
-- USES clock
-- KEYS stream, meta
-- ARGV clock
-- ->   count
local stream, meta = KEYS[1], KEYS[2]

local ttl = tonumber(redis.call("HGET", meta, "ttlMs"))
if not ttl then return redis.call("ZCARD", stream) end
return redis.call("ZCOUNT", stream, int(now_ms() - ttl + 1), "+inf")
