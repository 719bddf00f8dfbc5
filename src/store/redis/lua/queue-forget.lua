-- Finished tasks are kept for so long, and at most so many of them: `completed` and `cancelled` together, `failed` for themselves.
-- A bounded number of them is forgotten in one step.

-- Ends are numbered by the microseconds of the store.
function q.end_before(ms) return format("%d", (q.now - ms) * 1000 + 999) end

function q.forget(set, ids)
  q.many("ZREM", q.base .. set, ids)
  local keys = {}
  for i = 1, #ids do keys[i] = q.tasks .. ids[i] end
  call("UNLINK", unpack(keys))
  if #ids >= q.MOST then q.more = true end
  return #ids
end

function q.forget_aged(set, keep_ms)
  local ids = call("ZRANGE", q.base .. set, "-inf", q.end_before(keep_ms), "BYSCORE", "LIMIT", "0", "500")
  return #ids > 0 and q.forget(set, ids) or 0
end

-- Of sets that share one limit the oldest ends go first.
function q.forget_excess(sets, keep_count)
  local excess, heads = -keep_count, {}
  for _, set in ipairs(sets) do excess = excess + call("ZCARD", q.base .. set) end
  if excess <= 0 then return 0 end
  if excess > q.MOST then
    excess = q.MOST
    q.more = true
  end
  for _, set in ipairs(sets) do
    local ends = call("ZRANGE", q.base .. set, 0, excess - 1, "WITHSCORES")
    for i = 1, #ends, 2 do heads[#heads + 1] = { set, ends[i], tonumber(ends[i + 1]) } end
  end
  if #sets > 1 then table.sort(heads, function(a, b) return a[3] < b[3] end) end
  local going = {}
  for i = 1, excess do
    local set = heads[i][1]
    going[set] = going[set] or {}
    table.insert(going[set], heads[i][2])
  end
  for set, ids in pairs(going) do q.forget(set, ids) end
  return excess
end

function q.forget_old()
  local kept = call("HMGET", q.meta, "keepMs", "keepCount", "keepFailedMs", "keepFailedCount")
  if not kept[1] then return 0 end
  local n = q.forget_aged("completed", tonumber(kept[1])) + q.forget_aged("cancelled", tonumber(kept[1]))
  n = n + q.forget_aged("failed", tonumber(kept[3]))
  n = n + q.forget_excess({ "completed", "cancelled" }, tonumber(kept[2]))
  return n + q.forget_excess({ "failed" }, tonumber(kept[4]))
end

-- A throttled dedupe key whose window is over is free, if its task has ended.
function q.forget_windows()
  for _, dedupe in ipairs(q.until_now(q.base .. "windows")) do
    local till, owner = string.match(call("HGET", q.base .. "dedupe", dedupe) or "", "^(%d+) (.*)$")
    local state = owner and call("HGET", q.tasks .. owner, "s")
    if owner and tonumber(till) <= q.now and not (state and string.find("wsa", state, 1, true)) then
      call("HDEL", q.base .. "dedupe", dedupe)
    end
    call("ZREM", q.base .. "windows", dedupe)
  end
end

-- After 30 days nobody submits a tick of a removed schedule any more.
function q.forget_schedules()
  local removed = q.base .. "removed"
  local ids = call("ZRANGE", removed, "-inf", format("%d", q.now - 2592000000), "BYSCORE", "LIMIT", "0", "500")
  q.many("HDEL", q.base .. "ticks", ids)
  q.many("ZREM", removed, ids)
end
