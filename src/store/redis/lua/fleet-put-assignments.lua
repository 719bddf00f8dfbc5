-- Replaces all assignments, if the token is the present leader's.
-- USES clock, revision
-- KEYS meta, leader, assignments
-- ARGV clock, hint, fleet, token, json
-- FLAGS allow-oom
-- ->   "stored" | "not-leader"
local meta, leader, assignments = KEYS[1], KEYS[2], KEYS[3]
local hint, fleet, json = ARGV[2], ARGV[3], ARGV[5]
local now = now_ms()

local token, ends = string.match(redis.call("GET", leader) or "", "|(%d+)|(%d+)|%d$")
if token ~= ARGV[4] or tonumber(ends) <= now then return "not-leader" end
if redis.call("GET", assignments) == json then return "stored" end
redis.call("SET", assignments, json)
bump(meta, hint, fleet, now)
return "stored"
