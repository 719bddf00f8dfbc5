-- Renews the claims of holders that extend themselves, and tells what each holds.
-- USES clock, pool, pool-hold
-- KEYS base
-- ARGV clock, fleet, holders...
-- ->   {at, per holder: {id, token, until, …}}
p.open(KEYS[1], now_us(), ARGV[2])
p.know()
p.know_claims()

local function keep(holder)
  local held = {}
  for _, number in ipairs(call("SMEMBERS", p.base .. "holder:" .. holder)) do
    local claim = string.sub(number, 1, 1) ~= "=" and p.read_claim(number)
    if claim and claim.till > p.now then
      local item = p.read(number)
      local till = p.now + claim.hold
      if claim.auto == "1" and till > claim.till then
        claim.till = till
        p.write_claim(number, claim)
        p.mark(number, item.tags, p.held_mark(item, claim.uses, till))
        p.wake(till)
      end
      held[#held + 1] = item.id
      held[#held + 1] = claim.token
      held[#held + 1] = claim.till
    end
  end
  return held
end

local held = {}
for i = 3, #ARGV do held[#held + 1] = keep(ARGV[i]) end
local at = format("%d", p.next())
p.close()
return { at, held }
