-- Cancels tasks: at once what is not active; what is active is marked.
-- USES clock, queue, queue-lanes, queue-ends, queue-by-hand
-- KEYS base
-- ARGV clock, fleet, ids...
-- FLAGS allow-oom
-- ->   per id: "cancelled" | "cancelling" | "finished" | "unknown"
q.open(KEYS[1], now_us(), ARGV[2])

local answer = {}
for i = 3, #ARGV do answer[#answer + 1] = q.cancel(ARGV[i]) end
q.flush()
q.reseat()
q.close()
return answer
