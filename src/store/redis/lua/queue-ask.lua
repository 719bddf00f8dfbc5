-- Marks a task, unless it has ended, so that its end is told.

local function ask(base, id)
  local key = base .. "task:" .. id
  local state, fixed, holder = unpack(redis.call("HMGET", key, "s", "v", "h"))
  if not state or not string.find("wsa", state, 1, true) then return end
  -- Whoever claims it or ends its claim looks no further where there is no flag.
  redis.call("HSET", key, "q", "1", "v", "1" .. string.sub(fixed, 2))
  if holder then redis.call("HSET", key, "h", "1" .. string.sub(holder, 2)) end
end
