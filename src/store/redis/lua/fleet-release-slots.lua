-- Releases the leases that still bear these tokens.
-- KEYS leases
-- ARGV held...
-- FLAGS allow-oom
-- ->   how many were released
--
-- `held` are pairs slot, token.
local leases = KEYS[1]

local released = 0
for i = 1, #ARGV, 2 do
  local lease = redis.call("HGET", leases, ARGV[i])
  if string.match(lease or "", "|(%d+)|%d+$") == ARGV[i + 1] then
    released = released + redis.call("HDEL", leases, ARGV[i])
  end
end
return released
