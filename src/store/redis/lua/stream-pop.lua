-- Removes and returns up to n oldest entries, oldest first.
-- USES clock
-- KEYS stream, meta
-- ARGV clock, n
-- FLAGS allow-oom
-- ->   the entries
local stream, meta = KEYS[1], KEYS[2]
local n = tonumber(ARGV[2])

local ttl = tonumber(redis.call("HGET", meta, "ttlMs"))
if ttl then
  local expired = redis.call("ZREMRANGEBYSCORE", stream, "-inf", "(" .. int(now_ms() - ttl + 1))
  if expired > 0 then redis.call("HINCRBY", meta, "expired", expired) end
end
local entries = redis.call("ZRANGE", stream, 0, n - 1)
if #entries > 0 then
  redis.call("ZREMRANGEBYRANK", stream, 0, #entries - 1)
  redis.call("HINCRBY", meta, "popped", #entries)
end
return entries
