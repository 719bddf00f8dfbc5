-- Releases all that holders hold who are gone, and ends their places in line.
-- USES clock, pool, pool-hold, pool-ends, pool-line
-- KEYS base
-- ARGV clock, fleet, holders...
-- ->   how many claims were released
p.open(KEYS[1], now_us(), ARGV[2])
p.know()
p.know_claims()
p.know_lines()
p.know_ends()
local released = 0
for i = 3, #ARGV do
  local held = {}
  for _, member in ipairs(call("SMEMBERS", p.base .. "holder:" .. ARGV[i])) do
    if string.sub(member, 1, 1) == "=" then
      local request = string.sub(member, 2)
      p.step_out(request, p.read_waiter(request))
    else
      held[#held + 1] = { number = member, claim = p.read_claim(member) }
    end
  end
  table.sort(held, function(a, b) return tonumber(a.claim.token) < tonumber(b.claim.token) end)
  for _, one in ipairs(held) do released = released + p.let_go(one.number, p.read(one.number), one.claim) end
end
p.close()
return released
