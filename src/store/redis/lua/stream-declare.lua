-- Writes a stream's bounds: an owner's always, a guest's only while the stream has none.
-- KEYS meta
-- ARGV role, maxLength, ttlMs, maxPayloadBytes
-- FLAGS allow-oom
-- ->   {maxLength, ttlMs, maxPayloadBytes} that hold now
local meta = KEYS[1]
local role, max_length, ttl, max_bytes = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

if role == "owner" or redis.call("HEXISTS", meta, "maxLength") == 0 then
  redis.call("HSET", meta, "maxLength", max_length, "ttlMs", ttl, "maxPayloadBytes", max_bytes, "declaredBy", role)
end
return redis.call("HMGET", meta, "maxLength", "ttlMs", "maxPayloadBytes")
