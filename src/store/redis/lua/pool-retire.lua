-- Retires or removes an item, whoever holds it.
-- USES clock, pool-head, pool, pool-item, pool-ends
-- KEYS base
-- ARGV clock, fleet, id, how, note
-- ->   "unknown" | "retired" | "removed"
--
-- `how` is "retired" or "removed".
p.open(KEYS[1], now_us(), ARGV[2])
p.know()
p.know_ends()
local number, how = p.number_of(ARGV[3]), ARGV[4]
if not number then return "unknown" end
local item = p.read(number)
local state = p.state_of(p.mark_of(number))
if state == "held" then
  if item.till <= p.now then
    -- It had ended by then, and may have taken the item with it.
    p.lapse(number, item)
    local mark = p.mark_of(number)
    state = mark and p.state_of(mark) or "gone"
  else
    p.drop_claim(number, item, p.now, p.place())
    p.count("released", 1)
  end
end
if state == "gone" then
  p.close()
  return "unknown"
end
if how == "removed" then
  p.erase(number, item)
  -- One that was retired has left the pool already, as what it is counted.
  if state ~= "retired" then p.count("removed", 1) end
elseif state ~= "retired" then
  p.retire(number, item, "asked", ARGV[5], p.now)
end
p.close()
return how
