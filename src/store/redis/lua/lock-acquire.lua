-- Grants a lock, or takes and keeps a place in line for it.
-- USES clock, token, lock
-- KEYS base
-- ARGV clock, fleet, key, request, holder, by, holdMs, patienceMs
-- FLAGS allow-oom
-- ->   {"granted", token, until, now, 1 where the name is new} | {"held", by, until or "", position or "", now}
--
-- Without `patienceMs` ("") it takes no place. Each call also clears a little of what others left behind: grants that have ended, lines
-- that nobody stands in any more.
l.open(KEYS[1], now_us(), ARGV[2])
local key, request, holder, by, patience = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[8]
local line = l.base .. "line:" .. key
local now = int(l.now)

for _, other in ipairs(call("ZRANGE", l.ends, "-inf", now, "BYSCORE", "LIMIT", "0", "10")) do l.drop_grant(other) end
for _, other in ipairs(call("ZRANGE", l.lines, "-inf", now, "BYSCORE", "LIMIT", "0", "10")) do
  call("DEL", l.base .. "line:" .. other, l.base .. "patience:" .. other, l.base .. "waiters:" .. other)
  call("ZREM", l.lines, other)
end

local grant = l.grant_of(key)
-- A repeat after a lost answer.
if grant and grant.request == request then return { "granted", grant.token, grant.ends, now, 0 } end

local changed = l.forget_silent(key)
local first = l.first(key)
if not grant and (not first or first == request) then
  if first then l.step_out(key, request) end
  local new = call("HEXISTS", l.meta, "token") == 0 and 1 or 0
  grant = {
    token = next_token(l.meta, l.us), ends = int(l.now + tonumber(ARGV[7])), since = now,
    request = request, holder = holder, by = by,
  }
  l.put_grant(key, grant)
  return { "granted", grant.token, grant.ends, now, new }
end

if patience ~= "" then
  if not call("ZSCORE", line, request) then
    call("ZADD", line, int(call("HINCRBY", l.meta, "seq", 1)), request)
    call("HSET", l.base .. "waiters:" .. key, request, now .. " " .. #holder .. " " .. holder .. by)
  end
  local till = int(l.now + tonumber(patience))
  call("ZADD", l.base .. "patience:" .. key, till, request)
  call("ZADD", l.lines, "GT", till, key)
end
-- The lock is free, and whose turn it is has not heard of it.
if changed and not grant then l.hint(key) end
local position = call("ZRANK", line, request)
if grant then return { "held", grant.by, grant.ends, position or "", now } end
local _, next_by = l.waiter(key, first)
return { "held", next_by or "", "", position or "", now }
