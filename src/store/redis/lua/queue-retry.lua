-- Puts failed and cancelled tasks back as waiting, as if they had never run.
-- USES clock, queue, queue-lanes, queue-ends
-- KEYS base
-- ARGV clock, fleet, ids...
-- ->   per id: "waiting" | "not-finished" | "completed" | "unknown"
local fleet = ARGV[2]
open(KEYS[1], now_us())

local answer = {}
for i = 3, #ARGV do answer[#answer + 1] = put_back(ARGV[i]) end
reseat()
close(fleet)
return answer
