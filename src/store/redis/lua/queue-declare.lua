-- Writes a queue's settings: an owner's always, a guest's only while the queue has none. Lanes go by the new limits at once.
-- USES clock, queue, queue-lanes
-- KEYS base
-- ARGV clock, fleet, role, settings...
-- FLAGS allow-oom
-- ->   the settings that hold now, in the order of those given
--
-- `settings` are pairs name, value.
local role = ARGV[3]
q.open(KEYS[1], now_us(), ARGV[2])

local names = {}
for i = 4, #ARGV, 2 do names[#names + 1] = ARGV[i] end
if role == "owner" or not q.declared then
  call("HSET", q.meta, "declaredBy", role, unpack(ARGV, 4))
  local concurrency, key_limit = unpack(call("HMGET", q.meta, "concurrency", "keyConcurrency"))
  if tonumber(key_limit) ~= q.key_limit then
    q.key_limit = tonumber(key_limit)
    -- Only keys with active tasks can be touched by a limit.
    for _, lane in ipairs(call("SMEMBERS", q.base .. "blocked")) do q.touch(lane) end
    for _, id in ipairs(call("ZRANGE", q.active, "0", "-1")) do
      local lane = call("HGET", q.tasks .. id, "k")
      if lane then q.touch(lane) end
    end
    q.reseat()
  end
  q.concurrency = tonumber(concurrency)
  -- Whoever waits looks anew, whatever the limits were.
  call("PUBLISH", q.base .. "hint", ARGV[2])
end
q.close()
return call("HMGET", q.meta, unpack(names))
