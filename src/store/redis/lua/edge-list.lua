-- All edges, with what is kept of them.
-- USES clock
-- KEYS counts
-- ARGV clock
-- ->   {now, edge, counts, edge, counts, …}, see edge-observe.lua
local found = redis.call("HGETALL", KEYS[1])
table.insert(found, 1, int(now_ms()))
return found
