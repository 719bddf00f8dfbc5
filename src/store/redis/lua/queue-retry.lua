-- Puts failed and cancelled tasks back as waiting, as if they had never run.
-- USES clock, queue, queue-lanes, queue-ends, queue-by-hand
-- KEYS base
-- ARGV clock, fleet, ids...
-- ->   per id: "waiting" | "not-finished" | "completed" | "unknown"
q.open(KEYS[1], now_us(), ARGV[2])

local answer = {}
for i = 3, #ARGV do answer[#answer + 1] = q.put_back(ARGV[i]) end
q.reseat()
q.close()
return answer
