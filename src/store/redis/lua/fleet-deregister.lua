-- Takes a worker offline and releases its leases. An unknown incarnation is ignored.
-- USES clock, revision
-- KEYS meta, beats, leases, observed
-- ARGV clock, hint, fleet, id, incarnation
-- FLAGS allow-oom
-- ->   "gone" | "unknown"
local meta, beats, leases, observed = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local hint, fleet, id, incarnation = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local now = now_ms()

local beat = redis.call("HGET", beats, id)
local generation, seen, _, holder = string.match(beat or "", "^(%d+)|(%d+)|(%d+)|(.*)$")
if holder ~= incarnation then return "unknown" end

-- Without an incarnation, so that a late beat of this one does not bring it back.
redis.call("HSET", beats, id, generation .. "|" .. seen .. "|" .. int(math.min(tonumber(seen), now)) .. "|")
redis.call("HDEL", observed, id)
local held = redis.call("HGETALL", leases)
for i = 1, #held, 2 do
  local owner, run = string.match(held[i + 1], "^(.*)|([^|]*)|%d+|%d+$")
  if owner == id and run == incarnation then redis.call("HDEL", leases, held[i]) end
end
bump(meta, hint, fleet, now)
return "gone"
