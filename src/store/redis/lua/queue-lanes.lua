-- Where waiting tasks stand: one lane per key (`=<key>`) and one for all tasks without (`-`). A task's place in its lane is its band
-- (one per priority, the highest first), then its submission. The ring holds the lanes from which a task can be claimed, by the
-- band of their first task, then by turns. A lane at its limit stands in `blocked` instead, where it keeps its turn.
--
-- Whoever changes a lane says so by `touch` before; `reseat` puts all these lanes where they belong now.

local PLAIN = "-"
-- Places and turns lie below it; 2001 bands of it are below 2^53, so that all scores are exact.
local BAND = 2199023255552
local touched, order, served = {}, {}, {}

local function touch(lane)
  if touched[lane] then return end
  touched[lane] = true
  order[#order + 1] = lane
end

local function enter(id, lane, place)
  touch(lane)
  call("ZADD", base .. "lane:" .. lane, place, id)
  if lane ~= PLAIN then call("ZADD", base .. "keyed", place, id) end
end

local function leave(id, lane)
  touch(lane)
  call("ZREM", base .. "lane:" .. lane, id)
  if lane ~= PLAIN then call("ZREM", base .. "keyed", id) end
end

local function reseat_lane(lane)
  local first = call("ZRANGE", base .. "lane:" .. lane, 0, 0, "WITHSCORES")[2]
  local seat = call("ZSCORE", ring, lane)
  local full = lane ~= PLAIN and key_limit > 0 and call("SCARD", base .. "busy:" .. lane) >= key_limit
  if not first or full then
    if seat then call("ZREM", ring, lane) end
    if full then call(first and "SADD" or "SREM", base .. "blocked", lane) end
    return
  end
  local own = seat and tonumber(seat) % BAND
  if not seat or served[lane] then
    turn = turn + 1
    own = turn
  end
  local wanted = format("%d", math.floor(tonumber(first) / BAND) * BAND + own)
  if wanted ~= seat then call("ZADD", ring, wanted, lane) end
  if not seat and lane ~= PLAIN then call("SREM", base .. "blocked", lane) end
end

local function reseat()
  for i = 1, #order do reseat_lane(order[i]) end
  touched, order, served = {}, {}, {}
end
