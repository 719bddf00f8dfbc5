-- Enters a worker and its manifests, unless another incarnation of its id is alive. `replaces` ('' for none) is an incarnation known
-- to be dead: it does not count, and its slot leases end. The generation is at least the one given.
-- USES clock, revision
-- KEYS meta, workers, beats, manifests, observed, leases
-- ARGV clock, hint, fleet, id, incarnation, info, manifests, ttlMs, replaces, generation
-- FLAGS allow-oom
-- ->   {"registered", generation, now} | {"taken", info of the one alive, last seen}
local meta, workers, beats, manifests, observed, leases = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local hint, fleet, id, incarnation = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local now = now_ms()

-- An id that was pruned, or never seen, goes on behind the highest generation that was ever pruned: it never goes back.
local generation = tonumber(redis.call("HGET", meta, "prunedGeneration")) or 0
local same = false
local beat = redis.call("HGET", beats, id)
if beat then
  local counted, seen, ends, holder = string.match(beat, "^(%d+)|(%d+)|(%d+)|(.*)$")
  same = holder == incarnation
  -- One that cannot be read is nobody's.
  if not same and holder ~= ARGV[9] and (tonumber(ends) or 0) > now then return { "taken", redis.call("HGET", workers, id) or "{}", seen } end
  generation = tonumber(counted) or generation
end
if not same then generation = generation + 1 end
generation = math.max(generation, tonumber(ARGV[10]))

if ARGV[9] ~= "" then
  local held = redis.call("HGETALL", leases)
  for i = 1, #held, 2 do
    local owner, run = string.match(held[i + 1], "^(.*)|([^|]*)|%d+|%d+$")
    if owner == id and run == ARGV[9] then redis.call("HDEL", leases, held[i]) end
  end
end
local ends = now + tonumber(ARGV[8])
redis.call("HSET", beats, id, int(generation) .. "|" .. int(now) .. "|" .. int(ends) .. "|" .. incarnation)
redis.call("HSET", workers, id, ARGV[6])
redis.call("HSET", manifests, id, ARGV[7])
if not same then redis.call("HDEL", observed, id) end
bump(meta, hint, fleet, now)
return { "registered", generation, int(now) }
