-- Forgets the numbers of topics with a prefix that nobody has published to for so long.
-- One step of it: without a prefix the `n` that are silent for longest, else those of the next `n` topics, about, that have it.
-- USES clock
-- KEYS seqs, times
-- ARGV clock, prefix, silentMs, n, cursor
-- FLAGS allow-oom
-- ->   {how many were forgotten, cursor of the next step}; "0" where there is none, and for the first
local seqs, times = KEYS[1], KEYS[2]
local prefix, n = ARGV[2], ARGV[4]
local horizon = now_ms() - tonumber(ARGV[3])

local silent, cursor = {}, "0"
if prefix == "" then
  silent = redis.call("ZRANGE", times, "-inf", int(horizon), "BYSCORE", "LIMIT", "0", n)
  if #silent == tonumber(n) then cursor = "1" end
else
  local pattern = string.gsub(prefix, "[%*%?%[%]\\]", "\\%0") .. "*"
  local found = redis.call("ZSCAN", times, ARGV[5], "MATCH", pattern, "COUNT", n)
  cursor = found[1]
  for i = 1, #found[2], 2 do
    if tonumber(found[2][i + 1]) <= horizon then silent[#silent + 1] = found[2][i] end
  end
end
for _, topic in ipairs(silent) do
  redis.call("HDEL", seqs, topic)
  redis.call("ZREM", times, topic)
end
return { #silent, cursor }
