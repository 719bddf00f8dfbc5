-- Claims.

-- Claims one task that has left its lane. Not so when its time to live is over: then it has ended.
function q.claim(id, lane, taker)
  local key = q.tasks .. id
  local task = call("HMGET", key, "p", "v", "g")
  if not task[1] then return false end
  local keyed, flagged = lane ~= q.PLAIN, string.byte(task[2]) == 49
  if flagged then
    local expires, tick, dedupe, asked = unpack(call("HMGET", key, "e", "j", "d", "q"))
    if expires then
      call("ZREM", q.base .. "ttl", id)
      if tonumber(expires) <= q.now then
        q.fail(id, "expired", dedupe, asked)
        taker.expired = taker.expired + 1
        return false
      end
    end
    task[7] = tick
  end
  if keyed then
    call("SADD", q.base .. "busy:" .. lane, id)
    task[6] = lane
  elseif task[7] then
    task[6] = false
  end
  local bearing = q.new_token()
  task[4], task[5] = id, bearing
  call("HSET", key, "s", "a", "h", (keyed or flagged) and taker.flagged or taker.plain, "b", taker.begun)
  q.add_claim(taker, id, bearing, task)
  return true
end

-- Takes tasks from one lane: its first `n` that stand before a place. Answers how many were claimed.
function q.take_some(lane, n, before, taker)
  q.touch(lane)
  if n < 1 then return 0 end
  q.served[lane] = true
  local name = q.base .. "lane:" .. lane
  local ids = call("ZRANGE", name, "-inf", "(" .. format("%d", before), "BYSCORE", "LIMIT", "0", format("%d", n))
  q.many("ZREM", name, ids)
  local claimed = 0
  for i = 1, #ids do
    if lane ~= q.PLAIN then taker.keyed[#taker.keyed + 1] = ids[i] end
    if q.claim(ids[i], lane, taker) then claimed = claimed + 1 end
  end
  return claimed
end

-- The same where no other lane stands in the ring: as there is none to take turns with, it keeps its own.
function q.take_alone(lane, n, taker)
  q.touch(lane)
  if n < 1 then return 0 end
  local popped, claimed = call("ZPOPMIN", q.base .. "lane:" .. lane, format("%d", n)), 0
  if #popped < 2 * n then q.firsts[lane] = false end
  for i = 1, #popped, 2 do
    if lane ~= q.PLAIN then taker.keyed[#taker.keyed + 1] = popped[i] end
    if q.claim(popped[i], lane, taker) then claimed = claimed + 1 end
  end
  return claimed
end

-- Takes the first task of a lane, and notes what is the first now. Answers how many were claimed.
function q.take_one(lane, taker)
  q.touch(lane)
  q.served[lane] = true
  local name = q.base .. "lane:" .. lane
  local id, _, _, following = unpack(call("ZRANGE", name, "0", "1", "WITHSCORES"))
  q.firsts[lane] = following or false
  if not id then return 0 end
  call("ZREM", name, id)
  if lane ~= q.PLAIN then taker.keyed[#taker.keyed + 1] = id end
  return q.claim(id, lane, taker) and 1 or 0
end

-- Somebody who claims in this step.
function q.taker_of(holder, worker, lease_ms)
  return {
    holder = holder,
    plain = "0" .. holder,
    flagged = "1" .. holder,
    begun = q.stamp .. " " .. worker,
    until_ms = q.now + lease_ms,
    lease = format("%d", q.now + lease_ms),
    tasks = {}, claims = {}, leases = {}, keyed = {}, expired = 0,
  }
end

-- Notes what is claimed now.
function q.add_claim(taker, id, bearing, task)
  local claims, leases, n = taker.claims, taker.leases, #taker.claims
  claims[n + 1], claims[n + 2] = bearing, id
  leases[n + 1], leases[n + 2] = taker.lease, id
  taker.tasks[#taker.tasks + 1] = task
end

function q.write_claims(taker)
  if #taker.claims == 0 then return end
  q.add(q.active, taker.claims)
  q.add(q.base .. "held:" .. taker.holder, taker.leases)
  call("ZADD", q.base .. "holders", "LT", taker.lease, taker.holder)
  q.soon(taker.until_ms)
end

-- Claims up to `wanted` tasks for a holder and answers them. Where several lanes stand in the first band they are served one by one;
-- one that stands there alone is served until the next lane's band.
function q.take(wanted, holder, worker, lease_ms)
  local left = wanted
  if q.concurrency > 0 then left = math.min(left, q.concurrency - call("ZCARD", q.active)) end
  local taker = q.taker_of(holder, worker, lease_ms)
  -- Those that have expired are found one by one where `q.refresh` has left some: no more of them than it would take.
  while left > 0 and taker.expired < 500 do
    local seats = call("ZRANGE", q.ring, "0", format("%d", math.min(left, 500)), "WITHSCORES")
    if #seats == 0 then break end
    local band = math.floor(tonumber(seats[2]) / q.BAND)
    local next_band = seats[4] and math.floor(tonumber(seats[4]) / q.BAND)
    local lane = seats[1]
    if not next_band then
      left = left - q.take_alone(lane, math.min(left, 2000, q.room_of(lane)), taker)
      if q.firsts[lane] == false then left = 0 end
    elseif next_band ~= band then
      left = left - q.take_some(lane, math.min(left, 2000, q.room_of(lane)), next_band * q.BAND, taker)
    else
      local last = (band + 1) * q.BAND
      for i = 1, #seats, 2 do
        if left == 0 or tonumber(seats[i + 1]) >= last then break end
        left = left - q.take_one(seats[i], taker)
      end
    end
    q.reseat()
  end
  q.many("ZREM", q.base .. "keyed", taker.keyed)
  q.write_claims(taker)
  if taker.expired > 0 then q.flush() end
  return taker.tasks
end
