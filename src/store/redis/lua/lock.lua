-- Grants of a lock's name and the lines before them.
--
-- `l.base` is what all keys of the name begin with, `{<p>lock:<name>}:`; `keys.ts` says what lies behind it. Texts of users come last and
-- with their lengths, because they may hold anything.

local call = redis.call
local l = {}

-- `fleet`: as whom hints are given.
function l.open(base, us, fleet)
  l.base, l.fleet = base, fleet
  l.meta, l.grants, l.ends, l.lines = base .. "meta", base .. "grants", base .. "ends", base .. "lines"
  l.us, l.now = us, math.floor(us / 1000)
end

function l.hint(key)
  call("PUBLISH", l.base .. "hint", l.fleet .. " " .. key)
end

-- The grant that holds at present.
function l.grant_of(key)
  local text = call("HGET", l.grants, key)
  if not text then return nil end
  local token, ends, since, request, holder, rest = string.match(text, "^(%d+) (%d+) (%d+) (%d+) (%d+) (.*)$")
  if tonumber(ends) <= l.now then return nil end
  local middle = tonumber(request) + tonumber(holder)
  return {
    token = token, ends = ends, since = since,
    request = string.sub(rest, 1, tonumber(request)),
    holder = string.sub(rest, tonumber(request) + 1, middle),
    by = string.sub(rest, middle + 1),
  }
end

function l.put_grant(key, grant)
  local lengths = #grant.request .. " " .. #grant.holder
  local head = grant.token .. " " .. grant.ends .. " " .. grant.since .. " " .. lengths .. " "
  call("HSET", l.grants, key, head .. grant.request .. grant.holder .. grant.by)
  call("ZADD", l.ends, grant.ends, key)
end

function l.drop_grant(key)
  call("HDEL", l.grants, key)
  call("ZREM", l.ends, key)
end

function l.first(key)
  return call("ZRANGE", l.base .. "line:" .. key, "0", "0")[1]
end

-- Who and since when: holder, by, since.
function l.waiter(key, request)
  local text = call("HGET", l.base .. "waiters:" .. key, request)
  if not text then return nil end
  local since, holder, rest = string.match(text, "^(%d+) (%d+) (.*)$")
  return string.sub(rest, 1, tonumber(holder)), string.sub(rest, tonumber(holder) + 1), since
end

-- Leaves the line. Answers whether it stood first.
function l.step_out(key, request)
  local line = l.base .. "line:" .. key
  local first = l.first(key) == request
  if call("ZREM", line, request) == 0 then return false end
  call("ZREM", l.base .. "patience:" .. key, request)
  call("HDEL", l.base .. "waiters:" .. key, request)
  if call("EXISTS", line) == 0 then call("ZREM", l.lines, key) end
  return first
end

-- Forgets those in line who have not said again in time that they wait. Answers whether another stands first now.
function l.forget_silent(key)
  local changed = false
  local stop = string.format("%.0f", l.now)
  for _, request in ipairs(call("ZRANGE", l.base .. "patience:" .. key, "-inf", stop, "BYSCORE")) do
    if l.step_out(key, request) then changed = true end
  end
  return changed
end
