-- Up to n entries behind a cursor ("" for the oldest), without removing them. Expired ones are passed over.
-- USES clock
-- KEYS stream, meta
-- ARGV clock, n, after
-- ->   entry, cursor, entry, cursor, …
local stream, meta = KEYS[1], KEYS[2]
local n, after = ARGV[2], ARGV[3]

local ttl = tonumber(redis.call("HGET", meta, "ttlMs"))
local oldest = ttl and now_ms() - ttl + 1 or 0
local from = int(oldest)
if after ~= "" and tonumber(after) >= oldest then from = "(" .. after end
return redis.call("ZRANGE", stream, from, "+inf", "BYSCORE", "LIMIT", 0, n, "WITHSCORES")
