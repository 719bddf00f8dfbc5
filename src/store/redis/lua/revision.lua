-- The registry's revision. It starts at the store's milliseconds, so it grows also over a loss of all data.

local function bump(meta, hint, fleet, now)
  local revision = (tonumber(redis.call("HGET", meta, "revision")) or now) + 1
  redis.call("HSET", meta, "revision", int(revision))
  redis.call("PUBLISH", hint, fleet)
  return int(revision)
end
