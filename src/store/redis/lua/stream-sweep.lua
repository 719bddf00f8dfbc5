-- Frees the memory of expired entries and forgets producers not heard of for so long.
-- USES clock
-- KEYS stream, meta, ops
-- ARGV clock, silentMs
-- ->   how many entries had expired
local stream, meta, ops = KEYS[1], KEYS[2], KEYS[3]
local now = now_ms()

local ttl = tonumber(redis.call("HGET", meta, "ttlMs"))
local expired = 0
if ttl then
  expired = redis.call("ZREMRANGEBYSCORE", stream, "-inf", "(" .. int(now - ttl + 1))
  if expired > 0 then redis.call("HINCRBY", meta, "expired", expired) end
end
local horizon = now - tonumber(ARGV[2])
local producers = redis.call("HGETALL", ops)
for i = 1, #producers, 2 do
  local heard = tonumber(string.match(producers[i + 1], "|(%d+)$"))
  if heard <= horizon then redis.call("HDEL", ops, producers[i]) end
end
return expired
