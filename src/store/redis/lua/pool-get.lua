-- Reads an item.
-- USES pool, pool-hold, pool-record
-- KEYS base
-- ARGV id
-- ->   nil | the item, see `pool-record.lua`
p.open(KEYS[1], 0, "")
p.know()
p.know_claims()
local number = call("HGET", p.ids, ARGV[1])
if not number then return false end
return p.record(number, tonumber(call("ZSCORE", p.all, number)))
