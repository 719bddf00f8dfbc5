-- Writes a queue's settings: an owner's always, a guest's only while the queue has none. Lanes go by the new limits at once.
-- USES clock, queue, queue-lanes
-- KEYS base
-- ARGV clock, fleet, role, settings...
-- ->   the settings that hold now, in the order of those given
--
-- `settings` are pairs name, value.
local fleet, role = ARGV[2], ARGV[3]
open(KEYS[1], now_us())

local names = {}
for i = 4, #ARGV, 2 do names[#names + 1] = ARGV[i] end
if role == "owner" or not declared then
  call("HSET", meta, "declaredBy", role, unpack(ARGV, 4))
  local was_concurrency, was_limit = concurrency, key_limit
  local kept = call("HMGET", meta, "concurrency", "keyConcurrency")
  concurrency, key_limit = tonumber(kept[1]), tonumber(kept[2])
  if was_limit ~= key_limit then
    -- Only keys with active tasks can be touched by a limit.
    for _, lane in ipairs(call("SMEMBERS", base .. "blocked")) do touch(lane) end
    for _, id in ipairs(call("ZRANGE", active, 0, -1)) do
      local lane = call("HGET", tasks .. id, "k")
      if lane then touch(lane) end
    end
    reseat()
  end
  if was_limit ~= key_limit or was_concurrency ~= concurrency then call("PUBLISH", base .. "hint", fleet) end
end
close(fleet)
return call("HMGET", meta, unpack(names))
