-- What time has ended: leases, rests, lives of items, places in line. `p.due` says from when on there can be something.

-- See `p.know`.
function p.know_settling()
  p.know_ends()
  -- Numbers of items whose mark says that it was over at some time up to now, from one kind of mark on.
  function p.over(set, kind, most)
    return call("ZRANGE", set, p.text(kind), p.text(kind + p.now), "BYSCORE", "LIMIT", "0", format("%d", most), "WITHSCORES")
  end

  -- Releases leases that are over, in the order in which they ended, each as if it had been released then.
  function p.release_expired(set, most)
    local over = {}
    for _, kind in ipairs({ p.HELD, p.LAST }) do
      local found = p.over(set, kind, most)
      for i = 1, #found, 2 do
        over[#over + 1] = { number = found[i], item = p.read(found[i]) }
      end
    end
    table.sort(over, function(a, b)
      if a.item.till ~= b.item.till then return a.item.till < b.item.till end
      return a.item.token < b.item.token
    end)
    local place
    for _, one in ipairs(over) do place = p.lapse(one.number, one.item, place) end
    return #over
  end

  -- Frees items that have rested.
  function p.wake_up(set, most)
    local rested = p.over(set, p.COOL, most)
    for i = 1, #rested, 2 do
      local number = rested[i]
      local item = p.read(number)
      p.stirred = true
      p.mark(number, item.tags, p.strategy == "fifo" and tonumber(number) or item.place)
    end
    return #rested / 2
  end

  -- An item's life is over. One that is held stays until its release.
  function p.end_life(number, item)
    call("ZREM", p.base .. "ends", number)
    local mark = p.mark_of(number)
    local state = mark and p.state_of(mark)
    if state ~= "free" and state ~= "cooling" then return end
    if item.expires > 0 and item.expires <= p.now then
      p.expire(number, item)
    else
      p.retire(number, item, "max-age", "", item.put + p.max_age)
    end
  end

  -- When there is something to settle next.
  function p.next_due()
    local due = math.huge
    for _, kind in ipairs({ p.HELD, p.LAST, p.COOL }) do
      local first = call("ZRANGE", p.busy, p.text(kind), "+inf", "BYSCORE", "LIMIT", "0", "1", "WITHSCORES")[2]
      local at = first and tonumber(first) - kind
      if at and at < p.LAST - p.HELD then due = math.min(due, at) end
    end
    for _, set in ipairs({ "ends", "patience" }) do
      local first = call("ZRANGE", p.base .. set, "0", "0", "WITHSCORES")[2]
      if first then due = math.min(due, tonumber(first)) end
    end
    return due
  end
end

-- Does up to `most` of each kind; where there is more, also so much of what is in `sets`. Answers how many claims were released, how many
-- items expired and were retired.
function p.settle(most, sets)
  if p.now < p.due then return 0, 0, 0 end
  p.know_settling()
  local released = p.release_expired(p.busy, most)
  p.more = released >= most
  if p.wake_up(p.busy, most) == most then p.more = true end
  local ended = call("ZRANGE", p.base .. "ends", "-inf", format("%d", p.now), "BYSCORE", "LIMIT", "0", format("%d", most))
  for _, number in ipairs(ended) do p.end_life(number, p.read(number)) end
  local gone = call("ZRANGE", p.base .. "patience", "-inf", format("%d", p.now), "BYSCORE", "LIMIT", "0", format("%d", most))
  for _, request in ipairs(gone) do p.step_out(request, p.read_waiter(request)) end
  if #ended == most or #gone == most then p.more = true end
  if p.more then
    for _, set in ipairs(sets or {}) do
      released = released + p.release_expired(set, most)
      p.wake_up(set, most)
    end
  end
  p.due = p.more and 0 or p.next_due()
  return released, p.tally and p.tally.expired or 0, p.tally and p.tally.retired or 0
end
