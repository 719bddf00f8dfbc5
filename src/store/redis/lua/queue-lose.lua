-- Ends all claims of holders that are gone: as crashes those of the tasks named, as interruptions all others.
-- USES clock, queue, queue-lanes, queue-ends, queue-wait
-- KEYS base
-- ARGV clock, fleet, error, holders, names...
-- FLAGS allow-oom
-- ->   {crashes, interruptions}
--
-- `holders` says how many of the names are holders; the others are ids of tasks.
local error_text, holders = ARGV[3], tonumber(ARGV[4])
q.open(KEYS[1], now_us(), ARGV[2])

local crashed = {}
for i = 5 + holders, #ARGV do crashed[ARGV[i]] = true end
local crashes, interruptions = 0, 0
for i = 5, 4 + holders do
  local ids = call("ZRANGE", q.base .. "held:" .. ARGV[i], "0", "-1")
  for n = 1, #ids do
    if crashed[ids[n]] then
      q.settle(ids[n], "crashed", "", error_text)
      crashes = crashes + 1
    else
      q.settle(ids[n], "interrupted", "")
      interruptions = interruptions + 1
    end
  end
  -- At once, for a holder that is named twice.
  q.flush()
  call("ZREM", q.base .. "holders", ARGV[i])
  q.wait_no_more(ARGV[i])
end
q.reseat()
q.close()
return { crashes, interruptions }
