-- Keys with permits outstanding.
-- USES clock
-- KEYS base
-- ARGV clock, n
-- ->   {now in microseconds, key, state, key, state, …}, see limit.lua
local base = KEYS[1]
local now = int(now_us())

local found = { now }
for _, key in ipairs(redis.call("ZRANGE", base .. ":free", "(" .. now, "+inf", "BYSCORE", "LIMIT", "0", ARGV[2])) do
  found[#found + 1], found[#found + 2] = key, redis.call("HGET", base, key)
end
return found
