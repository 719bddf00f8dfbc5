-- Takes the next seq of a topic and publishes, in one step.
-- USES clock
-- KEYS seqs, times
-- ARGV clock, topic, channel, beforeTs, beforeSeq, tail
-- ->   {seq, ts}
--
-- The message is beforeTs .. ts .. beforeSeq .. seq .. tail: the payload is never parsed.
local seqs, times = KEYS[1], KEYS[2]
local topic, channel = ARGV[2], ARGV[3]

local seq = redis.call("HINCRBY", seqs, topic, 1)
local ts = int(now_ms())
redis.call("ZADD", times, ts, topic)
redis.call("PUBLISH", channel, ARGV[4] .. ts .. ARGV[5] .. int(seq) .. ARGV[6])
return { seq, ts }
