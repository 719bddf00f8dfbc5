-- Puts entries that a consumer could not use aside, keeps the newest ones, and counts them all.
-- KEYS quarantine, meta
-- ARGV keep, entries...
-- ->   how many are kept; nothing is, of a stream that is not declared
local quarantine, meta = KEYS[1], KEYS[2]
local keep = tonumber(ARGV[1])

if redis.call("HEXISTS", meta, "maxLength") == 0 then return 0 end
for i = 2, #ARGV do redis.call("LPUSH", quarantine, ARGV[i]) end
redis.call("LTRIM", quarantine, 0, keep - 1)
redis.call("HINCRBY", meta, "invalid", #ARGV - 1)
return redis.call("LLEN", quarantine)
