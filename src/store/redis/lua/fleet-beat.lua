-- Keeps a worker alive and renews its slot leases; takes its report on its slots ("" for: as last time).
-- USES clock, revision
-- KEYS meta, beats, leases, observed
-- ARGV clock, hint, fleet, id, incarnation, ttlMs, leaseMs, slots, held...
-- FLAGS allow-oom
-- ->   {"ok", now, revision, indexes (from 0) of the lost leases …} | {"unknown"}
--
-- `held` are pairs slot, token.
local meta, beats, leases, observed = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local hint, fleet, id, incarnation = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local now = now_ms()

local beat = redis.call("HGET", beats, id)
if not beat then return { "unknown" } end
local generation, _, ended, holder = string.match(beat, "^(%d+)|(%d+)|(%d+)|(.*)$")
if holder ~= incarnation then return { "unknown" } end

local ends = int(now + tonumber(ARGV[6]))
redis.call("HSET", beats, id, generation .. "|" .. int(now) .. "|" .. ends .. "|" .. incarnation)
if ARGV[8] ~= "" then redis.call("HSET", observed, id, ARGV[8]) end

local lease_ends = int(now + tonumber(ARGV[7]))
local lost = {}
for i = 9, #ARGV, 2 do
  local slot, token = ARGV[i], ARGV[i + 1]
  local lease = redis.call("HGET", leases, slot)
  local owner, present = string.match(lease or "", "^(.*|[^|]*)|(%d+)|%d+$")
  if present == token then
    redis.call("HSET", leases, slot, owner .. "|" .. token .. "|" .. lease_ends)
  else
    lost[#lost + 1] = (i - 9) / 2
  end
end

-- One that counted as offline and is back is a change for everybody.
local revision
if tonumber(ended) <= now then
  revision = bump(meta, hint, fleet, now)
else
  revision = redis.call("HGET", meta, "revision") or "0"
end
return { "ok", int(now), revision, unpack(lost) }
