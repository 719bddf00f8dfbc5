-- Removes records of workers that have been offline for longer than so long, and what was asked of them, except to be cordoned.
-- Slot leases that ended so long ago go too.
-- USES clock, revision
-- KEYS meta, workers, beats, manifests, observed, wishes, leases
-- ARGV clock, hint, fleet, offlineMs
-- FLAGS allow-oom
-- ->   how many were removed
local meta, workers, beats, manifests, observed, wishes, leases = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local hint, fleet = ARGV[2], ARGV[3]
local now = now_ms()

local horizon = now - tonumber(ARGV[4])
local highest = tonumber(redis.call("HGET", meta, "prunedGeneration")) or 0
local removed = 0
local all = redis.call("HGETALL", beats)
for i = 1, #all, 2 do
  local id = all[i]
  local generation, ends = string.match(all[i + 1], "^(%d+)|%d+|(%d+)|")
  -- One that cannot be read is nobody's: whoever it was of enters itself anew.
  if (tonumber(ends) or 0) < horizon then
    for _, key in ipairs({ workers, beats, manifests, observed }) do redis.call("HDEL", key, id) end
    redis.call("HDEL", wishes, "drain " .. id)
    highest = math.max(highest, tonumber(generation) or 0)
    removed = removed + 1
  end
end
local held = redis.call("HGETALL", leases)
for i = 1, #held, 2 do
  -- One that cannot be read is left for whoever looks what is damaged.
  local ends = tonumber(string.match(held[i + 1], "|(%d+)$"))
  if ends and ends < horizon then redis.call("HDEL", leases, held[i]) end
end
if removed > 0 then
  redis.call("HSET", meta, "prunedGeneration", int(highest))
  bump(meta, hint, fleet, now)
end
return removed
