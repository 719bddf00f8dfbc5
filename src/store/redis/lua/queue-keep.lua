-- Renews all claims of holders and tells what each holds; then takes back claims of others that have expired.
-- USES clock, queue, queue-lanes, queue-ends, queue-refresh, queue-wait
-- KEYS base
-- ARGV clock, fleet, leaseMs, idle, holders...
-- FLAGS allow-oom
-- ->   {"" | "undeclared", at, ready, due time of the next scheduled task or "", per holder: {ids, tokens, ids to be cancelled}}
--
-- `idle` has a "1" for each holder that may go on waiting for tasks.
q.open(KEYS[1], now_us(), ARGV[2])
local lease = format("%d", q.now + tonumber(ARGV[3]))

local function keep(holder)
  local leases = q.base .. "held:" .. holder
  local ids = call("ZRANGE", leases, "0", "-1")
  local tokens, cancelling, renewed = {}, {}, {}
  for from = 1, #ids, 2000 do
    local some = call("ZMSCORE", q.active, unpack(ids, from, math.min(from + 1999, #ids)))
    for i = 1, #some do tokens[#tokens + 1] = some[i] end
  end
  for i = 1, #ids do
    renewed[2 * i - 1], renewed[2 * i] = lease, ids[i]
    if q.is_cancelling(ids[i]) then cancelling[#cancelling + 1] = ids[i] end
  end
  if #ids > 0 then
    q.add(leases, renewed)
    call("ZADD", q.base .. "holders", "LT", lease, holder)
    q.soon(q.now + tonumber(ARGV[3]))
  end
  return { ids, tokens, cancelling }
end

local held = {}
for i = 5, #ARGV do
  held[#held + 1] = keep(ARGV[i])
  if string.sub(ARGV[4], i - 4, i - 4) == "1" then
    q.wait_longer(ARGV[i], tonumber(ARGV[3]))
  else
    q.wait_no_more(ARGV[i])
  end
end
q.reclaim()
q.reseat()
local at = q.new_token()
return { q.declared and "" or "undeclared", at, q.close(), q.next_due(), held }
