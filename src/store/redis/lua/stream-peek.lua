-- Up to n entries behind a cursor ("" for the oldest), without removing them. Expired ones are passed over.
-- USES clock
-- KEYS stream, meta
-- ARGV clock, n, after, newest
-- ->   entry, cursor, entry, cursor, …; of the newest ("1") the last one first
local stream, meta = KEYS[1], KEYS[2]
local n, after, newest = ARGV[2], ARGV[3], ARGV[4]

local ttl = tonumber(redis.call("HGET", meta, "ttlMs"))
local oldest = ttl and now_ms() - ttl + 1 or 0
local from = int(oldest)
if after ~= "" and tonumber(after) >= oldest then from = "(" .. after end
if newest == "1" then return redis.call("ZRANGE", stream, "+inf", from, "BYSCORE", "REV", "LIMIT", 0, n, "WITHSCORES") end
return redis.call("ZRANGE", stream, from, "+inf", "BYSCORE", "LIMIT", 0, n, "WITHSCORES")
