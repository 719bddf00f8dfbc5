-- Settings, counts and counters of a pool, and who waits.
-- USES clock, pool-head, pool, pool-line, pool-find
-- KEYS base
-- ARGV clock, fleet
-- ->   {} | {settings as name, value, …; {free, held, cooling, retired}; those who wait: {by, where, n, since}; totals, as `p.close` has them}
p.open(KEYS[1], now_us(), ARGV[2])
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
-- Names and values of settings; `head` is no text.
local settings, meta = {}, call("HGETALL", p.base .. "meta")
for i = 1, #meta, 2 do
  if meta[i] ~= "head" then
    settings[#settings + 1] = meta[i]
    settings[#settings + 1] = meta[i + 1]
  end
end
local counts = p.counts_of(p.groups_of(""))
local put, released, expired, retired, removed, leases_expired = struct.unpack(SUMS, p.totals)
-- Each claim is held still, or has ended by its time or otherwise.
local claimed = counts[2] + released + leases_expired
return { settings, counts, waiting, { put, claimed, released, expired, retired, removed, leases_expired } }
