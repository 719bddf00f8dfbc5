-- Claims each slot that is free or whose lease has expired.
-- USES clock, token
-- KEYS meta, leases
-- ARGV clock, id, incarnation, leaseMs, slots...
-- FLAGS allow-oom
-- ->   per slot: its token, or "" where it was not granted
local meta, leases = KEYS[1], KEYS[2]
local owner = ARGV[2] .. "|" .. ARGV[3] .. "|"
local us = now_us()
local now = math.floor(us / 1000)
local ends = int(now + tonumber(ARGV[4]))

local granted = {}
for i = 5, #ARGV do
  local lease = redis.call("HGET", leases, ARGV[i])
  -- One that cannot be read is nobody's.
  local ended = tonumber(string.match(lease or "", "|(%d+)$")) or 0
  local token = ""
  if ended <= now then
    token = next_token(meta, us)
    redis.call("HSET", leases, ARGV[i], owner .. token .. "|" .. ends)
  end
  granted[#granted + 1] = token
end
return granted
