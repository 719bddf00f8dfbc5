-- Retires or removes an item, whoever holds it.
-- USES clock, pool, pool-hold, pool-ends
-- KEYS base
-- ARGV clock, fleet, id, how, note
-- ->   "unknown" | "retired" | "removed"
--
-- `how` is "retired" or "removed".
p.open(KEYS[1], now_us(), ARGV[2])
p.know()
p.know_claims()
p.know_ends()
local number, how = call("HGET", p.ids, ARGV[3]), ARGV[4]
if not number then return "unknown" end
local item = p.read(number)
local state = p.state_of(tonumber(call("ZSCORE", p.all, number)))
if state == "held" then
  local claim = p.read_claim(number)
  if claim.till <= p.now then
    -- It had ended by then, and may have taken the item with it.
    p.lapse(number, item, claim)
    local mark = call("ZSCORE", p.all, number)
    state = mark and p.state_of(tonumber(mark)) or "gone"
  else
    p.drop_claim(number, claim, p.now, p.place())
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
