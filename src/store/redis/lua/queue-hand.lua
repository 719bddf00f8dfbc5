-- Hand-off: whoever submits claims tasks for holders that wait, in the same step, and sends them along.
-- LATER

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

-- Tasks are claimed only for those who can receive them.
function q.hand_out()
  local idle = q.base .. "idle"
  while q.ready() > 0 do
    local holder = call("HRANDFIELD", idle)
    if not holder then return end
    local till, wanted, lease_ms, worker = string.match(call("HGET", idle, holder), "^(%d+) (%d+) (%d+) (.*)$")
    wanted, lease_ms = tonumber(wanted), tonumber(lease_ms)
    local channel, tasks = q.base .. "hand:" .. holder, {}
    local heard = q.is_heard(channel)
    if heard == nil then return end
    if tonumber(till) > q.now and heard then
      tasks = q.take(math.min(wanted, 100), holder, worker, lease_ms)
    end
    if #tasks > 0 then call("PUBLISH", channel, q.message_of(tasks)) end
    if #tasks > 0 and #tasks < wanted then
      q.wait(holder, wanted - #tasks, lease_ms, worker)
    else
      q.wait_no_more(holder)
    end
  end
end
