-- Writes a slot's durable value ("" removes it), if the slot's lease bears the token.
-- KEYS leases, state
-- ARGV slot, token, value
-- FLAGS allow-oom
-- ->   "stored" | "lease-lost"
local leases, state = KEYS[1], KEYS[2]
local slot, token, value = ARGV[1], ARGV[2], ARGV[3]

local lease = redis.call("HGET", leases, slot)
if string.match(lease or "", "|(%d+)|%d+$") ~= token then return "lease-lost" end
if value == "" then
  redis.call("HDEL", state, slot)
else
  redis.call("HSET", state, slot, value)
end
return "stored"
