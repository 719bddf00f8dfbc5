-- Gives up a place in line, or the grant that the request has got meanwhile.
-- USES clock, lock
-- KEYS base
-- ARGV clock, fleet, key, request
-- FLAGS allow-oom
-- ->   1
l.open(KEYS[1], now_us(), ARGV[2])
local key, request = ARGV[3], ARGV[4]

local grant = l.grant_of(key)
if grant and grant.request == request then
  l.drop_grant(key)
  if l.first(key) then l.hint(key) end
elseif l.step_out(key, request) and not grant and l.first(key) then
  l.hint(key)
end
return 1
