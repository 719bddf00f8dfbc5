-- Stores desired state when the present generation is the expected one (0: there is none yet). `version` ("" for none) is the change of
-- config that enters the history with it; the newest `keep` of them stay.
-- USES clock, revision
-- KEYS meta, desired, configs
-- ARGV clock, hint, fleet, name, expected, generation, json, version, keep
-- FLAGS allow-oom
-- ->   "stored" | "conflict"
local meta, desired, configs = KEYS[1], KEYS[2], KEYS[3]
local hint, fleet, name = ARGV[2], ARGV[3], ARGV[4]
local now = now_ms()

local value = ARGV[6] .. "|" .. ARGV[7]
local present = redis.call("HGET", desired, name)
-- The same again: a repeat of a call whose answer was lost.
if present == value then return "stored" end
local generation = string.match(present or "0|", "^(%d+)|")
if tonumber(generation) ~= tonumber(ARGV[5]) then return "conflict" end
redis.call("HSET", desired, name, value)
if ARGV[8] ~= "" then
  -- After a loss of data a generation can come a second time.
  redis.call("ZREMRANGEBYSCORE", configs, ARGV[6], ARGV[6])
  redis.call("ZADD", configs, ARGV[6], int(now) .. "|" .. ARGV[8])
  redis.call("ZREMRANGEBYRANK", configs, 0, -1 - tonumber(ARGV[9]))
end
bump(meta, hint, fleet, now)
return "stored"
