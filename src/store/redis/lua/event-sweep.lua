-- Forgets the numbers of topics with a prefix that nobody has published to for so long.
-- USES clock
-- KEYS seqs, times
-- ARGV clock, prefix, silentMs
-- ->   how many were forgotten
local seqs, times = KEYS[1], KEYS[2]
local prefix = ARGV[2]

local forgotten = 0
for _, topic in ipairs(redis.call("ZRANGE", times, "-inf", int(now_ms() - tonumber(ARGV[3])), "BYSCORE")) do
  if string.sub(topic, 1, #prefix) == prefix then
    redis.call("HDEL", seqs, topic)
    redis.call("ZREM", times, topic)
    forgotten = forgotten + 1
  end
end
return forgotten
