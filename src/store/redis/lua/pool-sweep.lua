-- Settles what time has ended, and forgets retired items beyond what is kept.
-- USES clock, pool-head, pool, pool-item, pool-ends, pool-line, pool-settle, pool-find
-- KEYS base
-- ARGV clock, fleet
-- FLAGS allow-oom
-- ->   {released, expired, retired, forgotten, 1 where there is more}
p.open(KEYS[1], now_us(), ARGV[2])
p.know()
p.know_lines()
p.know_finding()
if not p.declared then return { 0, 0, 0, 0, 0 } end
local released, expired, retired = p.settle(500)

local most = 500
local kept = call("HMGET", p.base .. "meta", "keepRetiredMs", "keepRetiredCount")
local excess = p.size_of(p.busy, p.RETIRED, 2 * p.HELD) - tonumber(kept[2])
local old = p.size_of(p.busy, p.RETIRED, p.RETIRED + math.max(0, p.now - tonumber(kept[1])) + 1)
local forgotten = math.max(0, math.min(most, math.max(excess, old)))
if forgotten > 0 then
  p.know_ends()
  local n = format("%d", forgotten)
  for _, number in ipairs(call("ZRANGE", p.busy, p.text(p.RETIRED), "+inf", "BYSCORE", "LIMIT", "0", n)) do
    p.erase(number, p.read(number))
  end
end
p.close()
return { released, expired, retired, forgotten, (p.more or forgotten == most) and 1 or 0 }
