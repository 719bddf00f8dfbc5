-- Ends all grants and places in line of holders that are gone.
-- USES clock, lock
-- KEYS base
-- ARGV clock, fleet, holders...
-- FLAGS allow-oom
-- ->   how many grants
--
-- It looks at everything of the name: holders die seldom.
l.open(KEYS[1], now_us(), ARGV[2])

local gone = {}
for i = 3, #ARGV do gone[ARGV[i]] = true end
local free, released = {}, 0
for _, key in ipairs(call("HKEYS", l.grants)) do
  local grant = l.grant_of(key)
  if grant and gone[grant.holder] then
    l.drop_grant(key)
    released, free[key] = released + 1, true
  end
end
for _, key in ipairs(call("ZRANGE", l.lines, "0", "-1")) do
  for _, request in ipairs(call("HKEYS", l.base .. "waiters:" .. key)) do
    if gone[l.waiter(key, request)] and l.step_out(key, request) and not l.grant_of(key) then free[key] = true end
  end
end
for key in pairs(free) do
  if l.first(key) then l.hint(key) end
end
return released
