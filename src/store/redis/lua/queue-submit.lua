-- Submits lists of tasks, each as a whole or not at all.
-- USES clock, queue, queue-lanes, queue-ends, queue-by-hand, queue-refresh, queue-write, queue-ask, queue-rivals, queue-take, queue-wait, queue-hand
-- KEYS base
-- ARGV clock, fleet, lists...
-- ->   per list: "new" (all were submitted) | {id, outcome, id, outcome, …} | {"full", length, maxLength}; or "undeclared"
--
-- `lists`: each begins with its number of tasks. A task is its id, payload, `<priority> <maxAttempts> <timeoutMs> <ttlMs>`, and the
-- number of further pairs, then these: k lane, delay, at, dedupe, mode, window, q asked, j schedule, tick.
q.open(KEYS[1], now_us(), ARGV[2])
if not q.declared then return "undeclared" end

local answer = {}
local i = 3
while i <= #ARGV do
  local size = tonumber(ARGV[i])
  i = i + 1
  local list = { at = {}, extras = {}, keys = {} }
  local seen = {}
  for n = 1, size do
    local id, pairs_given = ARGV[i], ARGV[i + 3]
    list.at[n], list.keys[n] = i, q.tasks .. id
    if seen[id] then list.special = true end
    seen[id] = true
    i = i + 4
    if pairs_given ~= "0" then
      local extras = {}
      for _ = 1, tonumber(pairs_given) do
        extras[ARGV[i]] = ARGV[i + 1]
        i = i + 2
      end
      if extras.dedupe or extras.j then list.special = true end
      list.extras[n] = extras
    end
  end
  answer[#answer + 1] = q.submit(list)
end
q.write_lots()
q.reseat()
if call("EXISTS", q.base .. "idle") == 1 then
  q.refresh_once()
  q.hand_out()
end
q.close()
return answer
