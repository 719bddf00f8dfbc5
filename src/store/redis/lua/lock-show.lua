-- What is held, and who waits.
-- USES clock, lock
-- KEYS base
-- ARGV clock, n
-- ->   per key: {key, token or "", until, since, by, then of each who waits: by, since}
--
-- Of `n` keys at most.
l.open(KEYS[1], now_us(), "")

local found, seen = {}, {}
local function add(key)
  if seen[key] or #found >= tonumber(ARGV[2]) then return end
  seen[key] = true
  local grant = l.grant_of(key) or { token = "", ends = "", since = "", by = "" }
  local one = { key, grant.token, grant.ends, grant.since, grant.by }
  for _, request in ipairs(call("ZRANGE", l.base .. "line:" .. key, "0", "-1")) do
    local till = tonumber(call("ZSCORE", l.base .. "patience:" .. key, request))
    if till > l.now then
      local _, by, since = l.waiter(key, request)
      one[#one + 1], one[#one + 2] = by, since
    end
  end
  if grant.token ~= "" or #one > 5 then found[#found + 1] = one end
end
for _, key in ipairs(call("HKEYS", l.grants)) do add(key) end
for _, key in ipairs(call("ZRANGE", l.lines, "0", "-1")) do add(key) end
return found
