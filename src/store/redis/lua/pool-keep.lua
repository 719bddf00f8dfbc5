-- Renews the claims of holders that extend themselves, and tells what each holds.
-- USES clock, pool-head, pool
-- KEYS base
-- ARGV clock, fleet, holders...
-- FLAGS allow-oom
-- ->   {at, per holder: {id, token, until, …}}
p.open(KEYS[1], now_us(), ARGV[2])

local function keep(holder)
  local held = {}
  for _, number in ipairs(call("SMEMBERS", p.base .. "holder:" .. holder)) do
    local item = string.sub(number, 1, 1) ~= "=" and p.read(number)
    if item and item.till > p.now then
      local till = p.now + item.hold
      if item.auto and till > item.till then
        item.till = till
        p.write(number, item)
        p.mark(number, item.tags, p.held_mark(item))
        p.wake(till)
      end
      held[#held + 1] = item.id
      held[#held + 1] = format("%d", item.token)
      held[#held + 1] = item.till
    end
  end
  return held
end

local held = {}
for i = 3, #ARGV do held[#held + 1] = keep(ARGV[i]) end
local at = format("%d", p.next())
p.close()
return { at, held }
