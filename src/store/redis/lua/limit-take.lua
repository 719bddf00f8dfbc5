-- Takes permits, now or reserved for as soon as all windows agree.
-- USES clock, limit
-- KEYS base
-- ARGV clock, key, cost, withinMs, request, windows...
-- FLAGS allow-oom
-- ->   {"granted" | "later", waitMs, at in microseconds, 1 where the name is new}
--
-- The generic cell rate algorithm: `cost` permits fit in at a time t when t >= tat - (burst - cost) * step, and then
-- tat = max(tat, t) + cost * step. More than `burst` at once have to wait for what they exceed it by.
local base, key, cost = KEYS[1], ARGV[2], tonumber(ARGV[3])
local request = base .. ":r:" .. ARGV[5]
local us = now_us()

local kept = redis.call("GET", request)
if kept then return { "granted", int(math.max(0, math.ceil((tonumber(kept) - us) / 1000))), kept, 0 } end

local state = limit_read(redis.call("HGET", base, key))
local windows = limit_windows(ARGV, 6, #ARGV)
local at = us
for _, window in ipairs(windows) do
  local tat, room = state.tats[window.id] or 0, (window.burst - cost) * window.step
  if room < 0 then tat = math.max(tat, us) end
  at = math.max(at, tat - room)
end
-- What was given back before its time is had again, so that no place in line is left empty.
local again, sooner = limit_again(state, cost, us)
if again and sooner < at then at = sooner else again = nil end
local wait = math.ceil((at - us) / 1000)
if at - us > tonumber(ARGV[4]) * 1000 then return { "later", int(wait), int(at), 0 } end

if again then
  table.remove(state.back, again)
else
  for _, window in ipairs(windows) do
    state.tats[window.id] = math.max(state.tats[window.id] or 0, at) + cost * window.step
  end
  state.at, state.cost = int(at), ARGV[3]
end
local new = 0
if limit_write(base, key, state, windows, us) then
  if redis.call("HLEN", base) == 1 then new = 1 end
  limit_forget(base, us, "3")
end
redis.call("SET", request, int(at), "PX", int(60000 + wait))
return { "granted", int(wait), int(at), new }
