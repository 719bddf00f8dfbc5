-- What time alone has changed: claims whose lease has expired, tasks that are due, tasks past their time to live. A bounded number
-- of each in one step; `more` says whether there were more.

local MOST = 500
local more = false

local function until_now(key)
  local found = call("ZRANGE", key, "-inf", stamp, "BYSCORE", "LIMIT", 0, MOST)
  if #found == MOST then more = true end
  return found
end

-- `holders` bears a time at which, or after which, the first lease of each holder ends.
local function reclaim(fleet)
  local reclaimed = 0
  for _, holder in ipairs(until_now(base .. "holders")) do
    local leases = base .. "held:" .. holder
    if reclaimed < MOST then
      local ids = until_now(leases)
      for _, id in ipairs(ids) do settle(id, "crashed", "", fleet, "its lease has expired: its worker or process was lost") end
      reclaimed = reclaimed + #ids
      flush()
      local first = call("ZRANGE", leases, 0, 0, "WITHSCORES")[2]
      if first then
        call("ZADD", base .. "holders", first, holder)
      else
        call("ZREM", base .. "holders", holder)
      end
    else
      more = true
    end
  end
  return reclaimed
end

local function make_due()
  local ids = until_now(base .. "delayed")
  if #ids == 0 then return end
  many("ZREM", base .. "delayed", ids)
  for _, id in ipairs(ids) do
    local task = call("HMGET", tasks .. id, "k", "o")
    call("HSET", tasks .. id, "s", "w")
    enter(id, task[1] or PLAIN, task[2])
  end
end

local function expire(fleet)
  local ids = until_now(base .. "ttl")
  for _, id in ipairs(ids) do
    local task = call("HMGET", tasks .. id, "s", "k", "d", "q")
    withdraw(id, task[1], task[2])
    fail(id, "expired", task[3], task[4], fleet)
  end
  flush()
  return #ids
end

-- Answers how many claims were taken back and how many tasks expired.
local function refresh(fleet)
  local reclaimed = reclaim(fleet)
  make_due()
  local expired = expire(fleet)
  reseat()
  return reclaimed, expired
end
