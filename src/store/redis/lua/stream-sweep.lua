-- Frees the memory of expired entries and forgets producers not heard of for so long.
-- USES clock
-- KEYS stream, meta
-- ARGV clock, silentMs
-- FLAGS allow-oom
-- ->   how many entries had expired
local stream, meta = KEYS[1], KEYS[2]
local now = now_ms()

local ttl = tonumber(redis.call("HGET", meta, "ttlMs"))
local expired = 0
if ttl then
  expired = redis.call("ZREMRANGEBYSCORE", stream, "-inf", "(" .. int(now - ttl + 1))
  if expired > 0 then redis.call("HINCRBY", meta, "expired", expired) end
end
local horizon = now - tonumber(ARGV[2])
local fields = redis.call("HGETALL", meta)
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, 3) == "op:" then
    local heard = tonumber(string.match(fields[i + 1], "|(%d+)$"))
    if heard <= horizon then redis.call("HDEL", meta, fields[i]) end
  end
end
return expired
