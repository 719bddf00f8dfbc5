-- Keeps what is asked of a worker ("" for nothing), by kind and worker id.
-- USES clock, revision
-- KEYS meta, wishes
-- ARGV clock, hint, fleet, field, json
-- FLAGS allow-oom
-- ->   "stored" | "unchanged"
local meta, wishes = KEYS[1], KEYS[2]
local hint, fleet, field, json = ARGV[2], ARGV[3], ARGV[4], ARGV[5]

if (redis.call("HGET", wishes, field) or "") == json then return "unchanged" end
if json == "" then redis.call("HDEL", wishes, field) else redis.call("HSET", wishes, field, json) end
bump(meta, hint, fleet, now_ms())
return "stored"
