-- Takes the next seq of each event's topic and publishes them in their order, in one step.
-- USES clock
-- KEYS seqs, times
-- ARGV clock, afterSeq, runs...
-- ->   {ts, seq of each run's first event}
--
-- Events that follow one another with the same topic and source are a run: its topic, channel, beforeTs, beforeSeq, how many, then their
-- payloads. A message is beforeTs .. ts .. beforeSeq .. seq .. afterSeq .. payload .. "}": the payload is never parsed.
local call, format = redis.call, string.format
local seqs, times, after = KEYS[1], KEYS[2], ARGV[2]

local ts = format("%d", now_ms())
local answer = { ts }
local i = 3
while i <= #ARGV do
  local topic, channel, count = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 4])
  local head = ARGV[i + 2] .. ts .. ARGV[i + 3]
  local first = call("HINCRBY", seqs, topic, ARGV[i + 4]) - count + 1
  call("ZADD", times, ts, topic)
  for n = 0, count - 1 do
    call("PUBLISH", channel, head .. format("%d", first + n) .. after .. ARGV[i + 5 + n] .. "}")
  end
  answer[#answer + 1] = first
  i = i + 5 + count
end
return answer
