-- Removes records of workers that have been offline for longer than so long.
-- USES clock, revision
-- KEYS meta, workers, beats, manifests, observed
-- ARGV clock, hint, fleet, offlineMs
-- ->   how many were removed
local meta, workers, beats, manifests, observed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local hint, fleet = ARGV[2], ARGV[3]
local now = now_ms()

local horizon = now - tonumber(ARGV[4])
local highest = tonumber(redis.call("HGET", meta, "prunedGeneration")) or 0
local removed = 0
local all = redis.call("HGETALL", beats)
for i = 1, #all, 2 do
  local id = all[i]
  local generation, ends = string.match(all[i + 1], "^(%d+)|%d+|(%d+)|")
  if tonumber(ends) < horizon then
    for _, key in ipairs({ workers, beats, manifests, observed }) do redis.call("HDEL", key, id) end
    highest = math.max(highest, tonumber(generation))
    removed = removed + 1
  end
end
if removed > 0 then
  redis.call("HSET", meta, "prunedGeneration", int(highest))
  bump(meta, hint, fleet, now)
end
return removed
