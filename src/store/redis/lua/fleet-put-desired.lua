-- Stores desired state when the present generation is the expected one (0: there is none yet).
-- USES clock, revision
-- KEYS meta, desired
-- ARGV clock, hint, fleet, name, expected, generation, json
-- ->   "stored" | "conflict"
local meta, desired = KEYS[1], KEYS[2]
local hint, fleet, name = ARGV[2], ARGV[3], ARGV[4]

local value = ARGV[6] .. "|" .. ARGV[7]
local present = redis.call("HGET", desired, name)
-- The same again: a repeat of a call whose answer was lost.
if present == value then return "stored" end
local generation = string.match(present or "0|", "^(%d+)|")
if tonumber(generation) ~= tonumber(ARGV[5]) then return "conflict" end
redis.call("HSET", desired, name, value)
bump(meta, hint, fleet, now_ms())
return "stored"
