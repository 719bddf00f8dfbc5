-- What is done to tasks from outside of a claim.

-- Ends a task that is not active; marks one that is.
function q.cancel(id)
  local state, lane, dedupe, asked, holder = unpack(call("HMGET", q.tasks .. id, "s", "k", "d", "q", "h"))
  if not state then return "unknown" end
  if state == "x" then return "cancelled" end
  if q.STATES[state] then return "finished" end
  if state == "a" then
    call("SADD", q.base .. "cancelling", id)
    -- Whoever ends its claim looks no further where there is no flag.
    call("HSET", q.tasks .. id, "h", "1" .. string.sub(holder, 2))
    q.cancelling = true
    return "cancelling"
  end
  q.withdraw(id, state, lane)
  q.end_cancelled(id, dedupe, asked)
  return "cancelled"
end

-- Makes a failed or cancelled task wait as if it had never run.
function q.put_back(id)
  local key = q.tasks .. id
  local state, lane, place, dedupe, fixed = unpack(call("HMGET", key, "s", "k", "o", "d", "v"))
  if not state then return "unknown" end
  if state == "c" then return "completed" end
  if not q.STATES[state] then return "not-finished" end
  call("ZREM", q.base .. q.STATES[state], id)
  call("HDEL", key, "g", "f", "x", "m", "e", "b")
  call("HSET", key, "s", "w", "u", q.stamp)
  local ttl = tonumber(string.match(fixed, "^%S+ %S+ %S+ %S+ (%d+)"))
  if ttl > 0 then
    local expires = format("%d", q.now + ttl)
    call("HSET", key, "e", expires)
    call("ZADD", q.base .. "ttl", expires, id)
    q.soon(tonumber(expires))
  end
  if dedupe then
    local till, owner = string.match(call("HGET", q.base .. "dedupe", dedupe) or "0 ", "^(%d+) (.*)$")
    local held = call("HGET", q.tasks .. owner, "s")
    if not held or q.STATES[held] or owner == id then call("HSET", q.base .. "dedupe", dedupe, till .. " " .. id) end
  end
  q.enter(id, lane or q.PLAIN, place)
  return "waiting"
end
