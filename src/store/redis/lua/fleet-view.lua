-- Everything that placement and status need, read in one step.
-- USES clock
-- KEYS meta, workers, beats, observed, desired, assignments, leases, leader, wishes
-- ARGV clock
-- ->   {now, revision, assignments, leader, workers, beats, observed, desired, leases, wishes}; hashes as field, value, …
local now = int(now_ms())
local revision = redis.call("HGET", KEYS[1], "revision") or "0"
local assignments = redis.call("GET", KEYS[6]) or "{}"
local leader = redis.call("GET", KEYS[8]) or ""
local function hash(key) return redis.call("HGETALL", key) end
return {
  now, revision, assignments, leader,
  hash(KEYS[2]), hash(KEYS[3]), hash(KEYS[4]), hash(KEYS[5]), hash(KEYS[7]), hash(KEYS[9]),
}
