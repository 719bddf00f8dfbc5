-- Hand-off: whoever submits claims tasks for holders that wait, in the same step, and sends them along.

-- The fleet's id and all values of tasks in the order of `q.claim`, each as `<length>:<value>`, or `-:` for none.
function q.message_of(tasks)
  local parts = { q.fleet, " " }
  for i = 1, #tasks do
    for n = 1, 7 do
      local value = tasks[i][n]
      parts[#parts + 1] = value and format("%d:", #value) or "-:"
      if value then parts[#parts + 1] = value end
    end
  end
  return table.concat(parts)
end

-- Whether somebody can receive what is sent there; nil where the user may not ask. What was written stands: nothing is thrown.
function q.is_heard(channel)
  local found = redis.pcall("PUBSUB", "NUMSUB", channel)
  if found.err then return nil end
  return found[2] > 0
end

-- One of those that wait and can receive; those that cannot wait no more.
function q.next_idle()
  while q.idle > 0 do
    local found = call("HRANDFIELD", q.base .. "idle", "1", "WITHVALUES")
    if #found == 0 then
      q.idle = 0
      return
    end
    local till, wanted, lease_ms, worker = string.match(found[2], "^(%d+) (%d+) (%d+) (.*)$")
    local heard = q.is_heard(q.base .. "hand:" .. found[1])
    if heard == nil then return end
    if heard and tonumber(till) > q.now then
      wanted = tonumber(wanted)
      return { holder = found[1], worker = worker, lease_ms = tonumber(lease_ms), wanted = wanted, most = math.min(wanted, 100) }
    end
    q.wait_no_more(found[1])
  end
end

-- Tells it what it holds now.
function q.hand_over(to, tasks)
  if #tasks > 0 then call("PUBLISH", q.base .. "hand:" .. to.holder, q.message_of(tasks)) end
  if #tasks > 0 and #tasks < to.wanted then
    q.wait(to.holder, to.wanted - #tasks, to.lease_ms, to.worker)
  else
    q.wait_no_more(to.holder)
  end
end

-- Tasks are claimed only for those who can receive them.
function q.hand_out()
  while q.ready() > 0 do
    local to = q.next_idle()
    if not to then return end
    q.hand_over(to, q.take(to.most, to.holder, to.worker, to.lease_ms))
  end
end

-- New tasks that are all alike go straight to those who wait, where nothing stands before them. Answers the first one that is left.
function q.hand_new(list)
  local next, size = 1, #list.at
  while next <= size do
    local to = q.next_idle()
    if not to then break end
    local taker = q.taker_of(to.holder, to.worker, to.lease_ms)
    for n = next, math.min(size, next + to.most - 1) do
      local at = list.at[n]
      local kind, bearing = q.kind_at(at), q.new_token()
      q.seq = q.seq + 1
      call(
        "HSET", list.keys[n], "p", ARGV[at + 1], "v", kind.plain, "o", format("%d", kind.floor + q.seq),
        "s", "a", "h", taker.plain, "b", taker.begun
      )
      q.add_claim(taker, ARGV[at], bearing, { ARGV[at + 1], kind.plain, false, ARGV[at], bearing })
    end
    next = next + #taker.tasks
    q.write_claims(taker)
    q.hand_over(to, taker.tasks)
  end
  return next
end
