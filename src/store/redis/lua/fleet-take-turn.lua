-- Takes a turn to move slots of an automation, or renews one's own, unless so many others hold one. Turns that are over are cleared away.
-- USES clock
-- KEYS turns
-- ARGV clock, automation, holder, most, ttlMs
-- FLAGS allow-oom
-- ->   "taken" | "full"
local turns = KEYS[1]
local automation = ARGV[2] .. " "
local own = automation .. ARGV[3]
local now = now_ms()

local held, others = false, 0
local all = redis.call("HGETALL", turns)
for i = 1, #all, 2 do
  if (tonumber(all[i + 1]) or 0) <= now then
    redis.call("HDEL", turns, all[i])
  elseif all[i] == own then
    held = true
  elseif string.sub(all[i], 1, #automation) == automation then
    others = others + 1
  end
end
if not held and others >= tonumber(ARGV[4]) then return "full" end
redis.call("HSET", turns, own, int(now + tonumber(ARGV[5])))
return "taken"
