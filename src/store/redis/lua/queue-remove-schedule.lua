-- Removes a schedule, with a revision ("" for any) only as long as it has that one.
-- USES clock
-- KEYS base
-- ARGV clock, id, revision
-- FLAGS allow-oom
-- ->   "removed" | "unknown"
local base, id, revision = KEYS[1], ARGV[2], ARGV[3]

local stored = redis.call("HGET", base .. "schedules", id)
if not stored or (revision ~= "" and string.match(stored, "^%d+") ~= revision) then return "unknown" end
redis.call("HDEL", base .. "schedules", id)
-- Its last tick is remembered for a while: somebody may still be about to submit it.
redis.call("ZADD", base .. "removed", int(now_ms()), id)
return "removed"
