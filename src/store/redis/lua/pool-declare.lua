-- Writes a pool's settings: an owner's always, a guest's only while the pool has none.
-- USES clock, pool-head, pool
-- KEYS base
-- ARGV clock, fleet, role, settings...
-- FLAGS allow-oom
-- ->   {the settings that hold now, in the order of those given; 1 where items go by earlier ones, see `pool-renew.lua`}
--
-- `settings` are pairs name, value.
p.open(KEYS[1], now_us(), ARGV[2])
local meta, names = p.base .. "meta", {}
for i = 4, #ARGV, 2 do names[#names + 1] = ARGV[i] end
if ARGV[3] == "owner" or not p.declared then
  call("HSET", meta, unpack(ARGV, 4))
  local was_fifo, max_age = p.strategy == "fifo", p.max_age
  local kept = call("HMGET", meta, "strategy", "maxUses", "maxAgeMs", "cooldownMs", "retireAtScore")
  p.declared, p.strategy, p.bad_score = true, kept[1], tonumber(kept[5])
  p.max_uses, p.max_age, p.cooldown = tonumber(kept[2]), tonumber(kept[3]), tonumber(kept[4])
  if p.seq > 0 and ((p.strategy == "fifo") ~= was_fifo or p.max_age ~= max_age) then
    call("HSET", meta, "renewing", "0 0")
  end
end
p.close()
return { call("HMGET", meta, unpack(names)), call("HEXISTS", meta, "renewing") }
