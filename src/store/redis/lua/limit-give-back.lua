-- Gives permits back where nobody has taken any since.
-- USES clock, limit
-- KEYS base
-- ARGV clock, key, cost, at, windows...
-- ->   "given-back" | "too-late"
local base, key = KEYS[1], ARGV[2]
local us = now_us()

local state = limit_read(redis.call("HGET", base, key))
if state.at ~= ARGV[4] or state.cost ~= ARGV[3] then return "too-late" end
local windows = limit_windows(ARGV, 5, #ARGV)
for _, window in ipairs(windows) do
  state.tats[window.id] = math.max(0, (state.tats[window.id] or 0) - tonumber(ARGV[3]) * window.step)
end
state.at, state.cost = "0", "0"
limit_write(base, key, state, windows, us)
return "given-back"
