-- Reads an item.
-- USES pool-head, pool, pool-item, pool-record
-- KEYS base
-- ARGV id
-- ->   nil | the item, see `pool-record.lua`
p.open(KEYS[1], 0, "")
p.know()
local number = p.number_of(ARGV[1])
if not number then return false end
return p.record(number, p.mark_of(number))
