-- Cancels tasks: at once what is not active; what is active is marked.
-- USES clock, queue, queue-lanes, queue-ends
-- KEYS base
-- ARGV clock, fleet, ids...
-- ->   per id: "cancelled" | "cancelling" | "finished" | "unknown"
local fleet = ARGV[2]
open(KEYS[1], now_us())

local answer = {}
for i = 3, #ARGV do answer[#answer + 1] = cancel(ARGV[i], fleet) end
flush()
reseat()
close(fleet)
return answer
