-- Gives up a place in line, and what the request was granted meanwhile.
-- USES clock, pool-head, pool, pool-item, pool-ends, pool-line
-- KEYS base
-- ARGV clock, fleet, request
-- FLAGS allow-oom
-- ->   "left"
p.open(KEYS[1], now_us(), ARGV[2])
p.know()
p.know_lines()
p.know_ends()
local waiter = p.read_waiter(ARGV[3])
if waiter then p.step_out(ARGV[3], waiter) end
for number in string.gmatch(call("HGET", p.base .. "requests", ARGV[3]) or "", "%d+") do
  p.let_go(number, p.read(number))
end
p.close()
return "left"
