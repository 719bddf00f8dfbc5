-- Renews all claims of holders and tells what each holds.
-- USES clock, queue, queue-lanes, queue-ends, queue-refresh
-- KEYS base
-- ARGV clock, fleet, leaseMs, holders...
-- ->   {"" | "undeclared", at, ready, due time of the next scheduled task or "", per holder: {ids, tokens, ids to be cancelled}}
local fleet = ARGV[2]
open(KEYS[1], now_us())
local lease = format("%d", now + tonumber(ARGV[3]))

local function keep(holder)
  local leases = base .. "held:" .. holder
  local ids = call("ZRANGE", leases, 0, -1)
  local tokens, cancelling, renewed = {}, {}, {}
  if #ids == 0 then return { ids, tokens, cancelling } end
  for from = 1, #ids, 2000 do
    for _, bearing in ipairs(call("ZMSCORE", active, unpack(ids, from, math.min(from + 1999, #ids)))) do
      tokens[#tokens + 1] = bearing
    end
  end
  for i = 1, #ids do
    renewed[2 * i - 1], renewed[2 * i] = lease, ids[i]
    if is_cancelling(ids[i]) then cancelling[#cancelling + 1] = ids[i] end
  end
  many("ZADD", leases, renewed)
  call("ZADD", base .. "holders", "LT", lease, holder)
  return { ids, tokens, cancelling }
end

local held = {}
for i = 4, #ARGV do held[#held + 1] = keep(ARGV[i]) end
local at = new_token()
refresh(fleet)
local is_ready = close(fleet)
return { declared and "" or "undeclared", at, is_ready, next_due(), held }
