-- How claims and tasks end. What concerns whole sets is gathered and written by `flush`.

local STATES = { c = "completed", x = "cancelled", f = "failed" }
local dropped, held, ended = {}, {}, { c = {}, x = {}, f = {} }
local asked_to_cancel

-- The claim is over: of a task that was active.
local function drop(id, holder, lane)
  dropped[#dropped + 1] = id
  local list = held[holder]
  if not list then
    list = {}
    held[holder] = list
  end
  list[#list + 1] = id
  if lane ~= PLAIN then
    touch(lane)
    call("SREM", base .. "busy:" .. lane, id)
  end
end

local function is_cancelling(id)
  asked_to_cancel = asked_to_cancel or call("SCARD", base .. "cancelling")
  return asked_to_cancel > 0 and call("SISMEMBER", base .. "cancelling", id) == 1
end

local function flush()
  if #dropped > 0 then
    many("ZREM", active, dropped)
    for holder, ids in pairs(held) do many("ZREM", base .. "held:" .. holder, ids) end
    asked_to_cancel = asked_to_cancel or call("SCARD", base .. "cancelling")
    if asked_to_cancel > 0 then
      many("SREM", base .. "cancelling", dropped)
      asked_to_cancel = nil
    end
    dropped, held = {}, {}
  end
  for state, list in pairs(ended) do
    if #list > 0 then
      many("ZADD", base .. STATES[state], list)
      count("n:" .. STATES[state], #list / 2)
      ended[state] = {}
    end
  end
end

-- A dedupe key is free again when its task has ended, but not within the window of a throttled one.
local function release(dedupe, id)
  local till, owner = string.match(call("HGET", base .. "dedupe", dedupe) or "", "^(%d+) (.*)$")
  if owner == id and tonumber(till) <= now then call("HDEL", base .. "dedupe", dedupe) end
end

-- The task is over. Its hash is the caller's.
local function finish(id, state, dedupe, asked, fleet)
  local list = ended[state]
  list[#list + 1] = new_token()
  list[#list + 1] = id
  if dedupe then release(dedupe, id) end
  if asked then call("PUBLISH", base .. "finished", fleet .. " " .. id) end
end

local function fail(id, reason, dedupe, asked, fleet)
  count("r:" .. reason, 1)
  finish(id, "f", dedupe, asked, fleet)
  call("HSET", tasks .. id, "s", "f", "x", reason, "f", stamp)
end

-- `attempts crashes interruptions`; none of a task that never ran.
local function counters(text)
  if not text then return 0, 0, 0 end
  local attempts, crashes, interruptions = string.match(text, "^(%d+) (%d+) (%d+)$")
  return tonumber(attempts), tonumber(crashes), tonumber(interruptions)
end

-- Ends the claim of an active task in one of the ways of `Settlement`. `bearing` is the token that did it, "" where its holder was lost.
local function settle(id, how, bearing, fleet, text, reason, pause, final)
  local key = tasks .. id
  local task = call("HMGET", key, "k", "h", "d", "q", "g", "e")
  local lane, dedupe, asked = task[1] or PLAIN, task[3], task[4]
  drop(id, task[2], lane)
  -- Its time to live ended with its start.
  if task[6] and how ~= "returned" then call("HDEL", key, "e") end

  if how == "completed" then
    local counted = "1 0 0"
    if task[5] then
      local attempts, crashes, interruptions = counters(task[5])
      counted = format("%d %d %d", attempts + 1, crashes, interruptions)
    end
    finish(id, "c", dedupe, asked, fleet)
    if text then
      call("HSET", key, "s", "c", "f", stamp, "t", bearing, "g", counted, "r", text)
    else
      call("HSET", key, "s", "c", "f", stamp, "t", bearing, "g", counted)
    end
    return
  end

  local attempts, crashes, interruptions = counters(task[5])
  local cancelled, dead = how == "cancelled" or is_cancelling(id), false
  if how == "failed" then
    attempts = attempts + 1
    local most = string.match(call("HGET", key, "v"), "^%S+ (%d+)")
    if final == "1" or attempts >= tonumber(most) then dead = reason end
  elseif how == "crashed" then
    crashes = crashes + 1
    count("n:crashed", 1)
    if crashes >= crash_limit then dead = "poison" end
  elseif how == "interrupted" then
    interruptions = interruptions + 1
    count("n:interrupted", 1)
  end
  if how ~= "returned" then
    call("HSET", key, "g", format("%d %d %d", attempts, crashes, interruptions))
  end
  if bearing ~= "" then call("HSET", key, "t", bearing) end
  if text then call("HSET", key, "m", text) end

  if cancelled then
    finish(id, "x", dedupe, asked, fleet)
    call("HSET", key, "s", "x", "f", stamp)
  elseif dead then
    fail(id, dead, dedupe, asked, fleet)
  elseif how == "failed" and tonumber(pause) > 0 then
    count("n:retried", 1)
    local due = format("%d", now + tonumber(pause))
    call("HSET", key, "s", "s", "u", due)
    call("ZADD", base .. "delayed", due, id)
  else
    if how == "failed" then count("n:retried", 1) end
    if how == "returned" then
      call("HDEL", key, "b")
      if task[6] then call("ZADD", base .. "ttl", task[6], id) end
      call("HSET", key, "s", "w")
    else
      call("HSET", key, "s", "w", "u", stamp)
    end
    enter(id, lane, call("HGET", key, "o"))
  end
end

-- Takes an unfinished task that is not active from where it stands.
local function withdraw(id, state, lane)
  if state == "w" then
    leave(id, lane or PLAIN)
  else
    call("ZREM", base .. "delayed", id)
  end
  call("ZREM", base .. "ttl", id)
end

-- Ends a task that is not active; marks one that is.
local function cancel(id, fleet)
  local task = call("HMGET", tasks .. id, "s", "k", "d", "q")
  local state = task[1]
  if not state then return "unknown" end
  if state == "x" then return "cancelled" end
  if STATES[state] then return "finished" end
  if state == "a" then
    call("SADD", base .. "cancelling", id)
    asked_to_cancel = nil
    return "cancelling"
  end
  withdraw(id, state, task[2])
  finish(id, "x", task[3], task[4], fleet)
  call("HSET", tasks .. id, "s", "x", "f", stamp)
  return "cancelled"
end

-- Makes a failed or cancelled task wait as if it had never run.
local function put_back(id)
  local key = tasks .. id
  local task = call("HMGET", key, "s", "k", "o", "d", "v")
  local state = task[1]
  if not state then return "unknown" end
  if state == "c" then return "completed" end
  if state ~= "f" and state ~= "x" then return "not-finished" end
  call("ZREM", base .. STATES[state], id)
  call("HDEL", key, "g", "f", "x", "m", "e", "b")
  call("HSET", key, "s", "w", "u", stamp)
  local ttl = tonumber(string.match(task[5], "^%S+ %S+ %S+ (%d+)"))
  if ttl > 0 then
    local expires = format("%d", now + ttl)
    call("HSET", key, "e", expires)
    call("ZADD", base .. "ttl", expires, id)
  end
  if task[4] then call("HSETNX", base .. "dedupe", task[4], "0 " .. id) end
  enter(id, task[2] or PLAIN, task[3])
  return "waiting"
end
