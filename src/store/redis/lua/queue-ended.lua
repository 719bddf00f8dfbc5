-- Which of these tasks have ended, or are not there.
-- KEYS base
-- ARGV ids...
-- ->   their ids
local ended = {}
for i = 1, #ARGV do
  local state = redis.call("HGET", KEYS[1] .. "task:" .. ARGV[i], "s")
  if not state or not string.find("wsa", state, 1, true) then ended[#ended + 1] = ARGV[i] end
end
return ended
