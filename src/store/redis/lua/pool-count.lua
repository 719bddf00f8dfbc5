-- How many items that match are in each state.
-- USES pool-head, pool, pool-find
-- KEYS base
-- ARGV where
-- ->   {free, held, cooling, retired}
p.open(KEYS[1], 0, "")
p.know_finding()
return p.counts_of(p.groups_of(ARGV[1]))
