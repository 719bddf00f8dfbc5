-- Those who wait stand in one line per `where`, in the order in which they first asked.

-- See `p.know`.
function p.know_lines()
  -- The first in line who is still heard of.
  function p.first_in_line(where)
    while true do
      local first = call("ZRANGE", p.base .. "line:" .. where, "0", "0")[1]
      if not first or tonumber(call("ZSCORE", p.base .. "patience", first)) > p.now then return first end
      p.step_out(first, p.read_waiter(first))
    end
  end

  -- Takes a place in line, or keeps the one it has.
  function p.stand(request, waiter, patience)
    local till = p.now + patience
    call("ZADD", p.base .. "patience", format("%d", till), request)
    p.wake(till)
    if call("HEXISTS", p.base .. "waiters", request) == 1 then return end
    local asked = format("%d", p.next())
    call("ZADD", p.base .. "line:" .. waiter.where, asked, request)
    call("ZADD", p.base .. "waiting", asked, request)
    p.lines = p.lines + 1
    call("SADD", p.base .. "holder:" .. waiter.holder, "=" .. request)
    local head = format("%d %s %d %d ", p.now, waiter.n, #waiter.where, #waiter.holder)
    call("HSET", p.base .. "waiters", request, head .. waiter.where .. waiter.holder .. waiter.by)
  end

  -- Gives up a place in line.
  function p.step_out(request, waiter)
    call("HDEL", p.base .. "waiters", request)
    call("ZREM", p.base .. "waiting", request)
    p.lines = p.lines - 1
    call("ZREM", p.base .. "patience", request)
    call("ZREM", p.base .. "line:" .. waiter.where, request)
    call("SREM", p.base .. "holder:" .. waiter.holder, "=" .. request)
    p.stirred = true
  end

  -- `<since> <n> <lengths of where and holder> <these two><by>`
  function p.read_waiter(request)
    local text = call("HGET", p.base .. "waiters", request)
    if not text then return nil end
    local since, n, where, holder, at = string.match(text, "^(%d+) (%d+) (%d+) (%d+) ()")
    local to_holder = at + tonumber(where)
    local to_by = to_holder + tonumber(holder)
    return {
      since = since,
      n = n,
      where = string.sub(text, at, to_holder - 1),
      holder = string.sub(text, to_holder, to_by - 1),
      by = string.sub(text, to_by),
    }
  end
end
