-- Bounds, counters, length and age of a stream. Entries that have expired and still lie there are counted as expired.
-- USES clock
-- KEYS stream, meta
-- ARGV clock
-- ->   {maxLength, ttlMs, maxPayloadBytes, pushed, popped, trimmed, expired, invalid, length, score of the oldest or ""} | {}
local stream, meta = KEYS[1], KEYS[2]

local kept = redis.call(
  "HMGET", meta,
  "maxLength", "ttlMs", "maxPayloadBytes", "pushed", "popped", "trimmed", "expired", "invalid"
)
if not kept[1] then return {} end
local from = int(now_ms() - tonumber(kept[2]) + 1)
local length = redis.call("ZCOUNT", stream, from, "+inf")
local oldest = redis.call("ZRANGE", stream, from, "+inf", "BYSCORE", "LIMIT", 0, 1, "WITHSCORES")
local answer = {}
for i = 1, 8 do answer[i] = kept[i] or "0" end
answer[7] = int(tonumber(answer[7]) + redis.call("ZCARD", stream) - length)
answer[9] = int(length)
answer[10] = oldest[2] or ""
return answer
