-- Removes an offline worker's record and all that was asked of it. Its leases end by their own time, and go with those of others.
-- USES clock, revision
-- KEYS meta, workers, beats, manifests, observed, wishes
-- ARGV clock, hint, fleet, id
-- FLAGS allow-oom
-- ->   "removed" | "alive" | "unknown"
local meta, workers, beats, manifests, observed, wishes = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local hint, fleet, id = ARGV[2], ARGV[3], ARGV[4]
local now = now_ms()

local beat = redis.call("HGET", beats, id)
local generation, ends = string.match(beat or "", "^(%d+)|%d+|(%d+)|")
if ends and tonumber(ends) > now then return "alive" end
local cordoned = redis.call("HDEL", wishes, "cordon " .. id, "drain " .. id)
if not beat then
  if cordoned > 0 then bump(meta, hint, fleet, now) end
  return "unknown"
end

for _, key in ipairs({ workers, beats, manifests, observed }) do redis.call("HDEL", key, id) end
local highest = tonumber(redis.call("HGET", meta, "prunedGeneration")) or 0
redis.call("HSET", meta, "prunedGeneration", int(math.max(highest, tonumber(generation) or 0)))
bump(meta, hint, fleet, now)
return "removed"
