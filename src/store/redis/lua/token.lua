-- Fencing tokens: the store's microseconds, and always greater than the one before.

local function next_token(meta, us)
  local last = tonumber(redis.call("HGET", meta, "token")) or 0
  local token = int(math.max(us, last + 1))
  redis.call("HSET", meta, "token", token)
  return token
end
