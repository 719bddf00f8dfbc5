-- Finished tasks are kept for so long, and at most so many of them: `completed` and `cancelled` together, `failed` for themselves.
-- A bounded number of them is forgotten in one step.

-- Ends are numbered by the microseconds of the store.
local function end_before(ms) return format("%d", (now - ms) * 1000 + 999) end

local function forget(set, ids)
  many("ZREM", base .. set, ids)
  local keys = {}
  for i = 1, #ids do keys[i] = tasks .. ids[i] end
  call("UNLINK", unpack(keys))
  if #ids >= MOST then more = true end
  return #ids
end

local function forget_aged(set, keep_ms)
  local ids = call("ZRANGE", base .. set, "-inf", end_before(keep_ms), "BYSCORE", "LIMIT", 0, MOST)
  return #ids > 0 and forget(set, ids) or 0
end

-- Of sets that share one limit the oldest ends go first.
local function forget_excess(sets, keep_count)
  local excess, heads = -keep_count, {}
  for _, set in ipairs(sets) do excess = excess + call("ZCARD", base .. set) end
  if excess <= 0 then return 0 end
  if excess > MOST then
    excess = MOST
    more = true
  end
  for _, set in ipairs(sets) do
    local ends = call("ZRANGE", base .. set, 0, excess - 1, "WITHSCORES")
    for i = 1, #ends, 2 do heads[#heads + 1] = { set, ends[i], tonumber(ends[i + 1]) } end
  end
  if #sets > 1 then table.sort(heads, function(a, b) return a[3] < b[3] end) end
  local going = {}
  for i = 1, excess do
    local set = heads[i][1]
    going[set] = going[set] or {}
    table.insert(going[set], heads[i][2])
  end
  for set, ids in pairs(going) do forget(set, ids) end
  return excess
end

local function forget_old()
  local kept = call("HMGET", meta, "keepMs", "keepCount", "keepFailedMs", "keepFailedCount")
  if not kept[1] then return 0 end
  local n = forget_aged("completed", tonumber(kept[1])) + forget_aged("cancelled", tonumber(kept[1]))
  n = n + forget_aged("failed", tonumber(kept[3]))
  n = n + forget_excess({ "completed", "cancelled" }, tonumber(kept[2]))
  return n + forget_excess({ "failed" }, tonumber(kept[4]))
end

-- A throttled dedupe key whose window is over is free, if its task has ended.
local function forget_windows()
  for _, dedupe in ipairs(until_now(base .. "windows")) do
    local till, owner = string.match(call("HGET", base .. "dedupe", dedupe) or "", "^(%d+) (.*)$")
    local state = owner and call("HGET", tasks .. owner, "s")
    if owner and tonumber(till) <= now and not (state and string.find("wsa", state, 1, true)) then
      call("HDEL", base .. "dedupe", dedupe)
    end
    call("ZREM", base .. "windows", dedupe)
  end
end
