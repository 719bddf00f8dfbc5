-- Writes a pool's settings: an owner's always, a guest's only while the pool has none.
-- USES clock, pool
-- KEYS base
-- ARGV clock, fleet, role, settings...
-- ->   {the settings that hold now, in the order of those given; 1 where items go by earlier ones, see `pool-renew.lua`}
--
-- `settings` are pairs name, value.
p.open(KEYS[1], now_us(), ARGV[2])
local names = {}
for i = 4, #ARGV, 2 do names[#names + 1] = ARGV[i] end
if ARGV[3] == "owner" or not p.declared then
  call("HSET", p.meta, unpack(ARGV, 4))
  local strategy, max_age = unpack(call("HMGET", p.meta, "strategy", "maxAgeMs"))
  local reordered = (strategy == "fifo") ~= (p.strategy == "fifo")
  if p.seq > 0 and (reordered or tonumber(max_age) ~= p.max_age) then call("HSET", p.meta, "renewing", "0") end
end
p.close()
return { call("HMGET", p.meta, unpack(names)), call("HEXISTS", p.meta, "renewing") }
