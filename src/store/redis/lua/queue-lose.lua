-- Ends all claims of holders that are gone: as crashes those of the tasks named, as interruptions all others.
-- USES clock, queue, queue-lanes, queue-ends
-- KEYS base
-- ARGV clock, fleet, error, holders, names...
-- ->   {crashes, interruptions}
--
-- `holders` says how many of the names are holders; the others are ids of tasks.
local fleet, error_text, holders = ARGV[2], ARGV[3], tonumber(ARGV[4])
open(KEYS[1], now_us())

local crashed = {}
for i = 5 + holders, #ARGV do crashed[ARGV[i]] = true end
local crashes, interruptions = 0, 0
for i = 5, 4 + holders do
  for _, id in ipairs(call("ZRANGE", base .. "held:" .. ARGV[i], 0, -1)) do
    if crashed[id] then
      settle(id, "crashed", "", fleet, error_text)
      crashes = crashes + 1
    else
      settle(id, "interrupted", "", fleet)
      interruptions = interruptions + 1
    end
  end
  call("ZREM", base .. "holders", ARGV[i])
end
flush()
reseat()
close(fleet)
return { crashes, interruptions }
