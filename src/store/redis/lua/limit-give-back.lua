-- Gives permits back: as if they had never been taken where nobody has taken any since, else to whoever asks next before their time.
-- USES clock, limit
-- KEYS base
-- ARGV clock, key, cost, at, request, windows...
-- FLAGS allow-oom
-- ->   "given-back" | "too-late"
local base, key, cost, at = KEYS[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local request = base .. ":r:" .. ARGV[5]
local us = now_us()

if redis.call("GET", request) ~= ARGV[4] then return "too-late" end
local state = limit_read(redis.call("HGET", base, key))
local windows = limit_windows(ARGV, 6, #ARGV)
if state.at == ARGV[4] and state.cost == ARGV[3] then
  limit_lower(state, windows, cost)
  state.at, state.cost = "0", "0"
elseif at > us and #state.back < 1000 then
  local place = #state.back + 1
  while place > 1 and state.back[place - 1].at > at do place = place - 1 end
  table.insert(state.back, place, { at = at, cost = cost })
else
  return "too-late"
end
limit_shorten(state, windows)
limit_write(base, key, state, windows, us)
redis.call("DEL", request)
return "given-back"
