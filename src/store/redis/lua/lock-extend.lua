-- Extends grants that still hold; none gets shorter.
-- USES clock, lock
-- KEYS base
-- ARGV clock, leases...
-- FLAGS allow-oom
-- ->   per lease: until, or "" where it is lost
--
-- A lease is its key, token and holdMs.
l.open(KEYS[1], now_us(), "")

local answer = {}
for i = 2, #ARGV, 3 do
  local grant = l.grant_of(ARGV[i])
  local till = ""
  if grant and grant.token == ARGV[i + 1] then
    till = int(math.max(tonumber(grant.ends), l.now + tonumber(ARGV[i + 2])))
    grant.ends = till
    l.put_grant(ARGV[i], grant)
  end
  answer[#answer + 1] = till
end
return answer
