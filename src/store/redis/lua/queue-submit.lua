-- Submits lists of tasks, each as a whole or not at all.
-- USES clock, queue, queue-lanes, queue-ends, queue-by-hand, queue-refresh, queue-write, queue-ask, queue-rivals, queue-take, queue-wait, queue-hand
-- KEYS base
-- ARGV clock, fleet, common, lists...
-- ->   per list: "new" (all were submitted) | {id, outcome, id, outcome, …} | {"full", length, maxLength}; or "undeclared"
--
-- `lists`: each begins with its number of tasks. A task is its id and payload; where `common` is "", also `<priority> <maxAttempts>
-- <timeoutMs> <ttlMs>`, which is `common` else, and the number of further pairs, then these: k lane, delay, at, dedupe, mode, window,
-- q asked, j schedule, tick, rev, i print.
q.open(KEYS[1], now_us(), ARGV[2])
if not q.declared then return "undeclared" end

q.common = ARGV[3] ~= "" and ARGV[3]
local lists = {}
local i = 4
while i <= #ARGV do
  local size = tonumber(ARGV[i])
  i = i + 1
  local list = { at = {}, extras = {}, keys = {} }
  local seen = {}
  for n = 1, size do
    local id = ARGV[i]
    list.at[n], list.keys[n] = i, q.tasks .. id
    if seen[id] then list.special = true end
    seen[id] = true
    if q.common then
      i = i + 2
    else
      local pairs_given = tonumber(ARGV[i + 3])
      i = i + 4
      if pairs_given > 0 then
        local extras = {}
        for _ = 1, pairs_given do
          extras[ARGV[i]] = ARGV[i + 1]
          i = i + 2
        end
        if extras.dedupe or extras.j then list.special = true end
        list.extras[n] = extras
      end
    end
  end
  lists[#lists + 1] = list
end
local answer = {}
for n = 1, #lists do answer[n] = q.submit(lists[n]) end
q.write_lots()
q.reseat()
if q.idle > 0 then
  q.refresh_once()
  q.hand_out()
end
q.close()
return answer
