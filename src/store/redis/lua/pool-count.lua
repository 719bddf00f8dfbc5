-- How many items that match are in each state.
-- USES pool, pool-find
-- KEYS base
-- ARGV where
-- ->   {free, held, cooling, retired}
p.open(KEYS[1], 0, "")
p.know()
p.know_finding()
local set, made = p.joined(p.groups_of(ARGV[1]))
local counts = {
  p.size_of(set, 0, p.HELD),
  p.size_of(set, p.HELD, p.COOL),
  p.size_of(set, p.COOL, p.RETIRED),
  p.size_of(set, p.RETIRED, 2 * p.HELD),
}
p.discard(made)
return counts
