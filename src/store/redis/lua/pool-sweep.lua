-- Settles what time has ended, and forgets retired items beyond what is kept, and wishes that were not left again for long.
-- USES clock, pool-head, pool, pool-item, pool-ends, pool-line, pool-settle, pool-find
-- KEYS base
-- ARGV clock, fleet, refillMs
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

local refills, left = p.base .. "refills", p.base .. "left"
if call("HLEN", refills) > call("ZCARD", left) then
  -- Some were left by a version that kept no time of it.
  for _, where in ipairs(call("HKEYS", refills)) do call("ZADD", left, "NX", format("%d", p.now), where) end
end
local horizon = format("%d", p.now - tonumber(ARGV[3]))
local stale = call("ZRANGE", left, "-inf", horizon, "BYSCORE", "LIMIT", "0", format("%d", most))
for _, where in ipairs(stale) do
  -- Whoever waits in line left it long ago, and wishes so still.
  if call("EXISTS", p.base .. "line:" .. where) == 1 then
    call("ZADD", left, format("%d", p.now), where)
  else
    call("ZREM", left, where)
    call("HDEL", refills, where)
  end
end
p.close()
return { released, expired, retired, forgotten, (p.more or forgotten == most or #stale == most) and 1 or 0 }
