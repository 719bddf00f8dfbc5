-- How claims and tasks end. What concerns whole sets is gathered and written by `q.flush`.

q.STATES = { c = "completed", x = "cancelled", f = "failed" }

-- Writes what was gathered.
function q.flush()
  for holder, ids in pairs(q.dropped) do
    q.many("ZREM", q.active, ids)
    q.many("ZREM", q.base .. "held:" .. holder, ids)
    q.dropped[holder] = nil
  end
  for state, list in pairs(q.ended) do
    if #list > 0 then
      q.add(q.base .. q.STATES[state], list)
      q.count("n:" .. q.STATES[state], #list / 2)
      q.ended[state] = {}
    end
  end
end

function q.are_some_cancelling()
  if q.cancelling == "?" then q.cancelling = call("EXISTS", q.base .. "cancelling") == 1 end
  return q.cancelling
end

function q.is_cancelling(id)
  return q.are_some_cancelling() and call("SISMEMBER", q.base .. "cancelling", id) == 1
end

-- A dedupe key is free again when its task has ended, but not within the window of a throttled one.
function q.release(dedupe, id)
  local till, owner = string.match(call("HGET", q.base .. "dedupe", dedupe) or "", "^(%d+) (.*)$")
  if owner == id and tonumber(till) <= q.now then call("HDEL", q.base .. "dedupe", dedupe) end
end

-- The task is over. Its hash is the caller's.
function q.finish(id, state, dedupe, asked)
  local list = q.ended[state]
  local n = #list
  list[n + 1], list[n + 2] = q.new_token(), id
  if dedupe then q.release(dedupe, id) end
  if asked then call("PUBLISH", q.base .. "finished", q.fleet .. " " .. id) end
end

function q.fail(id, reason, dedupe, asked)
  q.count("r:" .. reason, 1)
  q.finish(id, "f", dedupe, asked)
  call("HSET", q.tasks .. id, "s", "f", "x", reason, "f", q.stamp)
end

function q.end_cancelled(id, dedupe, asked)
  q.finish(id, "x", dedupe, asked)
  call("HSET", q.tasks .. id, "s", "x", "f", q.stamp)
end

-- `attempts crashes interruptions`; none of a task that never ran.
function q.counters(text)
  if not text then return 0, 0, 0 end
  local attempts, crashes, interruptions = string.match(text, "^(%d+) (%d+) (%d+)$")
  return tonumber(attempts), tonumber(crashes), tonumber(interruptions)
end

-- Ends the claim of an active task in one of the ways of `Settlement`. `bearing` is the token that did it, "" where its holder was lost.
function q.settle(id, how, bearing, text, reason, pause, final)
  local key = q.tasks .. id
  local task = call("HMGET", key, "h", "g")
  local holder = string.sub(task[1], 2)
  local ids = q.dropped[holder]
  if not ids then
    ids = {}
    q.dropped[holder] = ids
  end
  ids[#ids + 1] = id

  local lane, dedupe, asked, expires, cancelling = false, false, false, false, false
  if string.byte(task[1]) == 49 then
    cancelling = q.is_cancelling(id)
    if cancelling then
      call("SREM", q.base .. "cancelling", id)
      q.cancelling = "?"
    end
    lane, dedupe, asked, expires = unpack(call("HMGET", key, "k", "d", "q", "e"))
    if lane then
      q.touch(lane, q.FREED)
      call("SREM", q.base .. "busy:" .. lane, id)
    end
    -- Its time to live ended with its start.
    if expires and how ~= "returned" then call("HDEL", key, "e") end
  end

  if how == "completed" then
    q.finish(id, "c", dedupe, asked)
    if text then
      call("HSET", key, "s", "c", "f", q.stamp, "t", bearing, "r", text)
    else
      call("HSET", key, "s", "c", "f", q.stamp, "t", bearing)
    end
    -- Without counters a completed task was completed at its first attempt.
    if task[2] then
      local attempts, crashes, interruptions = q.counters(task[2])
      call("HSET", key, "g", format("%d %d %d", attempts + 1, crashes, interruptions))
    end
    return
  end

  local attempts, crashes, interruptions = q.counters(task[2])
  local dead
  if how == "failed" then
    attempts = attempts + 1
    local most = string.match(call("HGET", key, "v"), "^%S+ %S+ (%d+)")
    if final == "1" or attempts >= tonumber(most) then dead = reason end
  elseif how == "crashed" then
    crashes = crashes + 1
    q.count("n:crashed", 1)
    if crashes >= q.crash_limit then dead = "poison" end
  elseif how == "interrupted" then
    interruptions = interruptions + 1
    q.count("n:interrupted", 1)
  end
  local fields = {}
  if how ~= "returned" then fields = { "g", format("%d %d %d", attempts, crashes, interruptions) } end
  if bearing ~= "" then
    fields[#fields + 1] = "t"
    fields[#fields + 1] = bearing
  end
  if text then
    fields[#fields + 1] = "m"
    fields[#fields + 1] = text
  end
  if #fields > 0 then call("HSET", key, unpack(fields)) end

  if how == "cancelled" or cancelling then
    q.end_cancelled(id, dedupe, asked)
  elseif dead then
    q.fail(id, dead, dedupe, asked)
  elseif how == "failed" and tonumber(pause) > 0 then
    q.count("n:retried", 1)
    local due = format("%d", q.now + tonumber(pause))
    call("HSET", key, "s", "s", "u", due)
    call("ZADD", q.base .. "delayed", due, id)
    q.soon(tonumber(due))
  else
    if how == "failed" then q.count("n:retried", 1) end
    if how == "returned" then
      call("HDEL", key, "b")
      if expires then
        call("ZADD", q.base .. "ttl", expires, id)
        q.soon(tonumber(expires))
      end
      call("HSET", key, "s", "w")
    else
      call("HSET", key, "s", "w", "u", q.stamp)
    end
    q.enter(id, lane or q.PLAIN, call("HGET", key, "o"))
  end
end

-- Takes an unfinished task that is not active from where it stands.
function q.withdraw(id, state, lane)
  if state == "w" then
    q.leave(id, lane or q.PLAIN)
  else
    call("ZREM", q.base .. "delayed", id)
  end
  call("ZREM", q.base .. "ttl", id)
end
