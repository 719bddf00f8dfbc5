-- Ends claims of tasks and takes new ones, in one step.
-- USES clock, queue, queue-lanes, queue-ends, queue-refresh, queue-take, queue-wait
-- KEYS base
-- ARGV clock, fleet, holder, worker, leaseMs, claim, idle, settlements...
-- FLAGS allow-oom
-- ->   {"" | "undeclared", indexes (from 0) of settlements whose lease was lost, tasks, now, ready, due time of the next scheduled task or ""}
--
-- A settlement is its id, token, outcome and number of further values, then these: of "completed" its result if any, of "failed" its
-- error, reason, pause in ms and "1" where it is final, of "crashed" its error. A task is {payload, its fixed values, counters or nil,
-- id, token}, and where it has any its lane and tick.
q.open(KEYS[1], now_us(), ARGV[2])

local lost = {}
if #ARGV > 7 then
  local at, ids = {}, {}
  local i = 8
  while i <= #ARGV do
    at[#at + 1], ids[#ids + 1] = i, ARGV[i]
    i = i + 4 + tonumber(ARGV[i + 3])
  end
  local over = {}
  for from = 1, #ids, 4000 do
    local to = math.min(from + 3999, #ids)
    local present = call("ZMSCORE", q.active, unpack(ids, from, to))
    for n = from, to do
      local i, id = at[n], ids[n]
      local bearing = ARGV[i + 1]
      if present[n - from + 1] == bearing and not over[id] then
        over[id] = true
        if ARGV[i + 3] == "0" then
          q.settle(id, ARGV[i + 2], bearing)
        else
          q.settle(id, ARGV[i + 2], bearing, ARGV[i + 4], ARGV[i + 5], ARGV[i + 6], ARGV[i + 7])
        end
      elseif call("HGET", q.tasks .. id, "t") ~= bearing then
        lost[#lost + 1] = n - 1
      end
    end
  end
  q.flush()
end
local wanted, tasks = tonumber(ARGV[6]), {}
if wanted > 0 then
  q.refresh()
  tasks = q.take(wanted, ARGV[3], ARGV[4], tonumber(ARGV[5]))
  if ARGV[7] == "1" and #tasks < wanted then
    q.wait(ARGV[3], wanted - #tasks, tonumber(ARGV[5]), ARGV[4])
  else
    q.wait_no_more(ARGV[3])
  end
else
  q.reseat()
  q.wait_no_more(ARGV[3])
end
return { q.declared and "" or "undeclared", lost, tasks, q.stamp, q.close(), q.next_due() }
