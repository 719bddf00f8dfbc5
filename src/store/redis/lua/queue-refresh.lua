-- What time alone has changed: claims whose lease has expired, tasks that are due, tasks past their time to live. A bounded number
-- of each in one step; `q.more` says whether there were more.

q.MOST, q.NEVER = 500, 9007199254740991
q.EXPIRED = "its lease expired: the worker or the process that ran it was lost"

function q.until_now(key)
  local found = call("ZRANGE", key, "-inf", q.stamp, "BYSCORE", "LIMIT", "0", "500")
  if #found == q.MOST then q.more = true end
  return found
end

-- `holders` bears a time at which, or after which, the first lease of each holder ends.
function q.reclaim()
  local holders, reclaimed = q.until_now(q.base .. "holders"), 0
  for i = 1, #holders do
    if reclaimed >= q.MOST then
      q.more = true
      return reclaimed
    end
    local leases = q.base .. "held:" .. holders[i]
    local ids = q.until_now(leases)
    for n = 1, #ids do
      q.settle(ids[n], "crashed", "", q.EXPIRED)
    end
    reclaimed = reclaimed + #ids
    q.flush()
    local first = call("ZRANGE", leases, "0", "0", "WITHSCORES")[2]
    if first then
      call("ZADD", q.base .. "holders", first, holders[i])
      q.soon(tonumber(first))
    else
      call("ZREM", q.base .. "holders", holders[i])
    end
  end
  return reclaimed
end

-- When the next scheduled task is due; "" where there is none.
function q.next_due()
  return call("ZRANGE", q.base .. "delayed", "0", "0", "WITHSCORES")[2] or ""
end

function q.make_due()
  local delayed = q.base .. "delayed"
  local ids = q.until_now(delayed)
  q.many("ZREM", delayed, ids)
  for i = 1, #ids do
    local lane, place = unpack(call("HMGET", q.tasks .. ids[i], "k", "o"))
    call("HSET", q.tasks .. ids[i], "s", "w")
    q.enter(ids[i], lane or q.PLAIN, place)
  end
end

function q.expire()
  local ids = q.until_now(q.base .. "ttl")
  for i = 1, #ids do
    local state, lane, dedupe, asked = unpack(call("HMGET", q.tasks .. ids[i], "s", "k", "d", "q"))
    q.withdraw(ids[i], state, lane)
    q.fail(ids[i], "expired", dedupe, asked)
  end
  return #ids
end

-- The same for one task, so that it can be told what it is by now. Written at once: all that has expired may be asked for in the same step.
function q.refresh_one(id)
  local state, lane, expires, dedupe, asked, holder = unpack(call("HMGET", q.tasks .. id, "s", "k", "e", "d", "q", "h"))
  if state == "a" then
    local lease = call("ZSCORE", q.base .. "held:" .. string.sub(holder, 2), id)
    if tonumber(lease) > q.now then return end
    q.settle(id, "crashed", "", q.EXPIRED)
    q.flush()
  elseif (state == "w" or state == "s") and expires and tonumber(expires) <= q.now then
    q.withdraw(id, state, lane)
    q.fail(id, "expired", dedupe, asked)
    q.flush()
  end
end

-- Answers how many claims were taken back, and how many tasks expired. `q.due` says from when on there may be some of either, or tasks
-- that are due: whatever enters one of these sets says so by `q.soon`.
function q.refresh()
  local reclaimed, expired = 0, 0
  if q.now >= q.due then
    reclaimed = q.reclaim()
    q.make_due()
    expired = q.expire()
    if expired > 0 then q.flush() end
    q.due = q.NEVER
    for _, set in ipairs({ "holders", "delayed", "ttl" }) do
      local first = call("ZRANGE", q.base .. set, "0", "0", "WITHSCORES")[2]
      if first then q.soon(tonumber(first)) end
    end
  end
  q.reseat()
  return reclaimed, expired
end
