-- Releases all that holders hold who are gone, and ends their places in line.
-- USES clock, pool-head, pool, pool-item, pool-ends, pool-line
-- KEYS base
-- ARGV clock, fleet, holders...
-- FLAGS allow-oom
-- ->   how many claims were released
p.open(KEYS[1], now_us(), ARGV[2])
p.know()
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
      held[#held + 1] = { number = member, item = p.read(member) }
    end
  end
  table.sort(held, function(a, b) return a.item.token < b.item.token end)
  for _, one in ipairs(held) do released = released + p.let_go(one.number, one.item) end
end
p.close()
return released
