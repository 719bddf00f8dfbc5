-- Where waiting tasks stand: one lane per key (`=<key>`) and one for all tasks without (`-`). A task's place in its lane is its band
-- (one per priority, the highest first), then its submission. The ring holds the lanes from which a task can be claimed, by the
-- band of their first task, then by turns; one that enters, or was served, gets the next turn. A lane with tasks that is at its
-- limit stands in `blocked` instead.
--
-- Whoever changes a lane, or how many of its tasks are active, says so by `q.touch`; `q.reseat` puts it where it belongs now.

q.PLAIN = "-"
-- Places and turns lie below it; 2001 bands of it are below 2^53, so that all scores are exact.
q.BAND = 2199023255552

-- `band`: the highest of tasks that were added, as nothing else has changed; `q.FREED` where only fewer tasks are active. A lane that
-- stands in the ring stays there as it is, unless what was added goes before its first task.
q.FREED = 2001

function q.touch(lane, band)
  local touched = q.touched[lane]
  if not touched then
    q.order[#q.order + 1] = lane
    touched = q.FREED
  end
  q.touched[lane] = math.min(touched, band or -1)
end

function q.enter(id, lane, place)
  q.touch(lane, math.floor(tonumber(place) / q.BAND))
  call("ZADD", q.base .. "lane:" .. lane, place, id)
  if lane ~= q.PLAIN then call("ZADD", q.base .. "keyed", place, id) end
end

function q.leave(id, lane)
  q.touch(lane)
  call("ZREM", q.base .. "lane:" .. lane, id)
  if lane ~= q.PLAIN then call("ZREM", q.base .. "keyed", id) end
end

-- How many more tasks of a lane may be active.
function q.room_of(lane)
  if lane == q.PLAIN or q.key_limit == 0 then return math.huge end
  return q.key_limit - call("SCARD", q.base .. "busy:" .. lane)
end

-- Place of a lane's first task. `q.firsts` has it where it was seen after the lane's last change.
function q.first_of(lane)
  local first = q.firsts[lane]
  if first == nil then first = call("ZRANGE", q.base .. "lane:" .. lane, "0", "0", "WITHSCORES")[2] end
  return tonumber(first or nil)
end

function q.reseat()
  local order, touched, served, band = q.order, q.touched, q.served, q.BAND
  if #order == 0 then return end
  local entering, leaving, blocked, free = {}, {}, {}, {}
  for from = 1, #order, 2000 do
    local seats = call("ZMSCORE", q.ring, unpack(order, from, math.min(from + 1999, #order)))
    -- Without a limit over all there is something to claim exactly while a lane stands in the ring: seen before the first change to it.
    if q.was_ready == "?" then q.was_ready = (seats[1] or call("EXISTS", q.ring) == 1) and true or false end
    for i = 1, #seats do
      local lane, seat = order[from + i - 1], tonumber(seats[i] or nil)
      if not seat or touched[lane] < math.floor(seat / band) then
        local first = q.first_of(lane)
        local full = q.room_of(lane) <= 0
        if first and not full then
          local own = seat and seat % band
          if not seat or served[lane] then
            q.turn = q.turn + 1
            own = q.turn
          end
          local wanted = first - first % band + own
          if wanted ~= seat then
            local n = #entering
            entering[n + 1], entering[n + 2] = format("%d", wanted), lane
          end
        elseif seat then
          leaving[#leaving + 1] = lane
        end
        if first and full then
          blocked[#blocked + 1] = lane
        elseif not seat and lane ~= q.PLAIN then
          free[#free + 1] = lane
        end
      end
    end
  end
  q.touched, q.order, q.served, q.firsts = {}, {}, {}, {}
  q.add(q.ring, entering)
  q.many("ZREM", q.ring, leaving)
  q.many("SADD", q.base .. "blocked", blocked)
  q.many("SREM", q.base .. "blocked", free)
end
