-- Claims.

local taken, claims, leases, started = {}, {}, {}, {}

-- Claims one task that has left its lane. Not so when its time to live is over: then it has ended.
local function claim(id, lane, holder, begun, lease, fleet)
  local key = tasks .. id
  local task = call("HMGET", key, "p", "v", "k", "g", "j", "e")
  if not task[1] then return false end
  local expires = task[6]
  if expires then
    call("ZREM", base .. "ttl", id)
    if tonumber(expires) <= now then
      local rest = call("HMGET", key, "d", "q")
      fail(id, "expired", rest[1], rest[2], fleet)
      return false
    end
  end
  local bearing = new_token()
  call("HSET", key, "s", "a", "h", holder, "b", begun)
  if lane ~= PLAIN then call("SADD", base .. "busy:" .. lane, id) end
  local n = #claims
  claims[n + 1], claims[n + 2] = bearing, id
  leases[n + 1], leases[n + 2] = lease, id
  task[6], task[7] = id, bearing
  taken[#taken + 1] = task
  return true
end

-- Takes tasks from one lane, its first `n` or those in front of `before`. Answers how many were claimed.
local function take_from(lane, n, before, holder, begun, lease, fleet)
  touch(lane)
  if n < 1 then return 0 end
  served[lane] = true
  local name = base .. "lane:" .. lane
  local ids
  if before then
    ids = call("ZRANGE", name, "-inf", "(" .. format("%d", before), "BYSCORE", "LIMIT", 0, n)
  else
    ids = call("ZRANGE", name, 0, n - 1)
  end
  if #ids == 0 then return 0 end
  many("ZREM", name, ids)
  if lane ~= PLAIN then many("ZREM", base .. "keyed", ids) end
  local claimed = 0
  for i = 1, #ids do
    if claim(ids[i], lane, holder, begun, lease, fleet) then claimed = claimed + 1 end
  end
  return claimed
end

-- Claims up to `wanted` tasks for a holder. Where several lanes stand in the first band they are served one by one; one that stands
-- there alone is served until the next lane's band.
local function take(wanted, holder, worker, lease_ms, fleet)
  local left = wanted
  if concurrency > 0 then left = math.min(left, concurrency - call("ZCARD", active)) end
  local begun, lease = stamp .. " " .. worker, format("%d", now + lease_ms)
  while left > 0 do
    local seats = call("ZRANGE", ring, 0, math.min(left, 500), "WITHSCORES")
    if #seats == 0 then break end
    local bands = {}
    for i = 2, #seats, 2 do bands[#bands + 1] = math.floor(tonumber(seats[i]) / BAND) end
    if bands[2] ~= bands[1] then
      local lane, n = seats[1], left
      if lane ~= PLAIN and key_limit > 0 then n = math.min(n, key_limit - call("SCARD", base .. "busy:" .. lane)) end
      left = left - take_from(lane, math.min(n, 2000), bands[2] and bands[2] * BAND, holder, begun, lease, fleet)
    else
      for i = 1, #bands do
        if bands[i] ~= bands[1] or left == 0 then break end
        left = left - take_from(seats[2 * i - 1], 1, nil, holder, begun, lease, fleet)
      end
    end
    reseat()
  end
  if #claims > 0 then
    many("ZADD", active, claims)
    many("ZADD", base .. "held:" .. holder, leases)
    call("ZADD", base .. "holders", "LT", lease, holder)
    claims, leases = {}, {}
  end
  flush()
  return taken
end
