-- Claims.
-- LATER

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
  local claims, leases, n = taker.claims, taker.leases, #taker.claims
  claims[n + 1], claims[n + 2] = bearing, id
  leases[n + 1], leases[n + 2] = taker.lease, id
  taker.tasks[#taker.tasks + 1] = task
  return true
end

-- Takes tasks from one lane: its first `n`, or those of them that stand before a place. Answers how many were claimed.
function q.take_some(lane, n, before, taker)
  q.touch(lane)
  if n < 1 then return 0 end
  q.served[lane] = true
  local name = q.base .. "lane:" .. lane
  local ids
  if before then
    ids = call("ZRANGE", name, "-inf", "(" .. format("%d", before), "BYSCORE", "LIMIT", "0", format("%d", n))
  else
    ids = call("ZRANGE", name, "0", format("%d", n - 1))
  end
  q.many("ZREM", name, ids)
  local claimed = 0
  for i = 1, #ids do
    if lane ~= q.PLAIN then taker.keyed[#taker.keyed + 1] = ids[i] end
    if q.claim(ids[i], lane, taker) then claimed = claimed + 1 end
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

-- Claims up to `wanted` tasks for a holder and answers them. Where several lanes stand in the first band they are served one by one;
-- one that stands there alone is served until the next lane's band.
function q.take(wanted, holder, worker, lease_ms)
  local left = wanted
  if q.concurrency > 0 then left = math.min(left, q.concurrency - call("ZCARD", q.active)) end
  local taker = {
    plain = "0" .. holder,
    flagged = "1" .. holder,
    begun = q.stamp .. " " .. worker,
    lease = format("%d", q.now + lease_ms),
    tasks = {}, claims = {}, leases = {}, keyed = {}, expired = 0,
  }
  -- Those that have expired are found one by one where `q.refresh` has left some: no more of them than it would take.
  while left > 0 and taker.expired < 500 do
    local seats = call("ZRANGE", q.ring, "0", format("%d", math.min(left, 500)), "WITHSCORES")
    if #seats == 0 then break end
    local band = math.floor(tonumber(seats[2]) / q.BAND)
    local next_band = seats[4] and math.floor(tonumber(seats[4]) / q.BAND)
    if next_band ~= band then
      local n = math.min(left, 2000, q.room_of(seats[1]))
      left = left - q.take_some(seats[1], n, next_band and next_band * q.BAND, taker)
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
  if #taker.claims > 0 then
    q.add(q.active, taker.claims)
    q.add(q.base .. "held:" .. holder, taker.leases)
    call("ZADD", q.base .. "holders", "LT", taker.lease, holder)
  end
  if taker.expired > 0 then q.flush() end
  return taker.tasks
end
