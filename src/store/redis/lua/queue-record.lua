-- A task as it is told to those who ask for it: id, payload, fixed values, state, lane, due, expires, dedupe key, "at schedule" of its tick, counters,
-- "start worker" of the last claim, end, result, reason, error, print, end of its lease, 1 where it is to be cancelled.

local function record_of(base, id)
  local key = base .. "task:" .. id
  local task = redis.call("HMGET", key, "p", "v", "s", "k", "u", "e", "d", "j", "g", "b", "f", "r", "x", "m", "i", "h")
  if not task[3] then return false end
  if task[3] == "c" then task[9] = task[9] or "1 0 0" end
  local holder = table.remove(task)
  table.insert(task, 1, id)
  if task[4] == "a" then
    task[17] = redis.call("ZSCORE", base .. "held:" .. string.sub(holder, 2), id)
    task[18] = redis.call("SISMEMBER", base .. "cancelling", id)
  end
  return task
end
