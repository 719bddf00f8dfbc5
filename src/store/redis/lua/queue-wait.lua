-- Holders that wait for tasks stand in `idle`, to be handed some by whoever submits; see `queue-hand.lua`.

-- From a holder's next turn on it holds what it says then.
function q.wait(holder, wanted, lease_ms, worker)
  local place = format("%d %d %d ", q.now + lease_ms, wanted, lease_ms) .. worker
  q.idle = q.idle + call("HSET", q.base .. "idle", holder, place)
end

function q.wait_no_more(holder)
  if q.idle > 0 then q.idle = q.idle - call("HDEL", q.base .. "idle", holder) end
end

-- Whoever keeps a holder's claims keeps its place among those that wait.
function q.wait_longer(holder, lease_ms)
  local waits = q.idle > 0 and call("HGET", q.base .. "idle", holder)
  if waits then call("HSET", q.base .. "idle", holder, format("%d", q.now + lease_ms) .. string.match(waits, " .*$")) end
end
