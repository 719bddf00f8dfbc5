-- Forgets edges that were not seen for so long.
-- USES clock
-- KEYS counts, seen
-- ARGV clock, unseenMs
-- FLAGS allow-oom
-- ->   how many
local counts, seen = KEYS[1], KEYS[2]

local old = redis.call("ZRANGE", seen, "-inf", int(now_ms() - tonumber(ARGV[2])), "BYSCORE")
for _, edge in ipairs(old) do
  redis.call("HDEL", counts, edge)
  redis.call("ZREM", seen, edge)
end
return #old
