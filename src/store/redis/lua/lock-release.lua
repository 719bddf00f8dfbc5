-- Ends a grant and tells who waits.
-- USES clock, lock
-- KEYS base
-- ARGV clock, fleet, key, token
-- FLAGS allow-oom
-- ->   "released" | "lease-lost"
l.open(KEYS[1], now_us(), ARGV[2])
local key = ARGV[3]

local grant = l.grant_of(key)
if not grant or grant.token ~= ARGV[4] then return "lease-lost" end
l.drop_grant(key)
l.forget_silent(key)
if l.first(key) then l.hint(key) end
return "released"
