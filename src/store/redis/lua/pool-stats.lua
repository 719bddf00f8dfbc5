-- Settings, counts and counters of a pool, and who waits.
-- USES clock, pool, pool-line, pool-find
-- KEYS base
-- ARGV clock, fleet
-- ->   {} | {meta as field, value, …; {free, held, cooling, retired}; those who wait: {by, where, n, since}}
p.open(KEYS[1], now_us(), ARGV[2])
p.know()
p.know_lines()
p.know_finding()
if not p.declared then return {} end
local waiting, from = {}, 0
repeat
  local some = call("ZRANGE", p.base .. "waiting", format("%d", from), format("%d", from + 99))
  for _, request in ipairs(some) do
    if #waiting < 100 and tonumber(call("ZSCORE", p.base .. "patience", request)) > p.now then
      local waiter = p.read_waiter(request)
      waiting[#waiting + 1] = { waiter.by, waiter.where, waiter.n, waiter.since }
    end
  end
  from = from + 100
until #some < 100 or #waiting == 100
local counts = {
  p.size_of(p.all, 0, p.HELD),
  p.size_of(p.all, p.HELD, p.COOL),
  p.size_of(p.all, p.COOL, p.RETIRED),
  p.size_of(p.all, p.RETIRED, 2 * p.HELD),
}
return { call("HGETALL", p.meta), counts, waiting }
