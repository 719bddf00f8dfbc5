-- Which items match. What is asked for comes as a text: groups, one for each tag named, parted by spaces; in each the tag's values,
-- parted by commas.

-- See `p.know`.
function p.know_finding()
  -- Groups of sets: an item matches that is in one set of each. The smallest is the first. Where no tag is named it is one of all items, of
  -- which there is no set; `p.busy` has those that are not free.
  function p.groups_of(where)
    local groups = {}
    for text in string.gmatch(where, "[^ ]+") do
      local sets = {}
      for value in string.gmatch(text, "[^,]+") do sets[#sets + 1] = p.base .. "tag:" .. value end
      groups[#groups + 1] = { sets = sets }
    end
    if #groups == 0 then return { { sets = { p.busy }, all = true } } end
    if #groups > 1 then
      for _, group in ipairs(groups) do
        group.size = 0
        for _, set in ipairs(group.sets) do group.size = group.size + call("ZCARD", set) end
      end
      table.sort(groups, function(a, b) return a.size < b.size end)
    end
    return groups
  end

  function p.is_in(sets, number)
    for _, set in ipairs(sets) do
      if call("ZSCORE", set, number) then return true end
    end
    return false
  end

  -- Whether an item of the first group is in all others too.
  function p.fits(groups, number)
    for i = 2, #groups do
      if not p.is_in(groups[i].sets, number) then return false end
    end
    return true
  end

  -- Calls `see(number, mark)` for the items of the sets by rising marks from `from` to below `to`, until it answers true or `looks` were
  -- taken. Answers false where there may be more.
  function p.walk(sets, from, to, chunk, looks, see)
    local low, high, some = p.text(from), "(" .. p.text(to), format("%d", chunk)
    local heads = {}
    local function fill(head)
      local offset = format("%d", head.offset)
      head.found = call("ZRANGE", head.set, low, high, "BYSCORE", "LIMIT", offset, some, "WITHSCORES")
      head.at, head.offset = 1, head.offset + chunk
    end
    for i, set in ipairs(sets) do
      heads[i] = { set = set, offset = 0 }
      fill(heads[i])
    end
    local last
    for _ = 1, looks do
      local best, lowest, number
      for _, head in ipairs(heads) do
        if head.at > #head.found and #head.found == 2 * chunk then fill(head) end
        local mark = tonumber(head.found[head.at + 1] or nil)
        if mark and (not best or mark < lowest or mark == lowest and head.found[head.at] < number) then
          best, lowest, number = head, mark, head.found[head.at]
        end
      end
      if not best then return true end
      best.at = best.at + 2
      -- An item that is in several sets has the same mark in each.
      if number ~= last and see(number, lowest) then return true end
      last = number
    end
    return false
  end

  -- The same for free items of the whole pool: blocks are opened as their first items come near.
  function p.walk_free(see)
    local first, from = p.text(p.HELD), 0
    local bounds, heads, stale = {}, {}, {}
    local function bound()
      if #bounds == 0 and from then
        local some = call("ZRANGE", p.firsts, "0", "(" .. first, "BYSCORE", "LIMIT", format("%d", from), "100", "WITHSCORES")
        from = #some == 200 and from + 100
        for i = #some - 1, 1, -2 do bounds[#bounds + 1] = { block = some[i], mark = tonumber(some[i + 1]) } end
      end
      return bounds[#bounds]
    end
    -- In falling order of their next marks.
    local function insert(head)
      local low, high, mark = 1, #heads + 1, tonumber(head.found[head.at + 1])
      while low < high do
        local middle = math.floor((low + high) / 2)
        if heads[middle].mark > mark then low = middle + 1 else high = middle end
      end
      head.mark = mark
      table.insert(heads, low, head)
    end
    local done = false
    repeat
      local next, best = bound(), heads[#heads]
      while next and (not best or next.mark <= best.mark) do
        bounds[#bounds] = nil
        local found = call("ZRANGE", p.base .. "marks:" .. next.block, "0", "-1", "WITHSCORES")
        if tonumber(found[2]) ~= next.mark then stale[#stale + 1] = { block = next.block, mark = found[2] } end
        if tonumber(found[2]) < p.HELD then insert({ found = found, at = 1 }) end
        next, best = bound(), heads[#heads]
      end
      if best then
        heads[#heads] = nil
        done = see(best.found[best.at], best.mark)
        best.at = best.at + 2
        if tonumber(best.found[best.at + 1] or p.HELD) < p.HELD then insert(best) end
      end
    until done or not best
    for _, one in ipairs(stale) do call("ZADD", p.firsts, "XX", one.mark, one.block) end
  end

  -- One set of all items that match. Where it had to be made, `p.discard` takes it away again.
  function p.joined(groups)
    local made, joint = {}, {}
    for i, group in ipairs(groups) do
      joint[i] = group.sets[1]
      if #group.sets > 1 then
        joint[i] = p.base .. "joint:" .. format("%d", i)
        made[#made + 1] = joint[i]
        local command = { "ZUNIONSTORE", joint[i], format("%d", #group.sets) }
        for _, set in ipairs(group.sets) do command[#command + 1] = set end
        command[#command + 1] = "AGGREGATE"
        command[#command + 1] = "MAX"
        call(unpack(command))
      end
    end
    if #joint == 1 then return joint[1], made end
    local whole = p.base .. "joint:0"
    made[#made + 1] = whole
    local command = { "ZINTERSTORE", whole, format("%d", #joint) }
    for _, set in ipairs(joint) do command[#command + 1] = set end
    command[#command + 1] = "AGGREGATE"
    command[#command + 1] = "MAX"
    call(unpack(command))
    return whole, made
  end

  function p.discard(made)
    if #made > 0 then call("DEL", unpack(made)) end
  end

  -- How many items that match are free, held, cooling and retired.
  function p.counts_of(groups)
    local set, made = p.joined(groups)
    local counts = {
      groups[1].all and p.size - call("ZCARD", p.busy) or p.size_of(set, 0, p.HELD),
      p.size_of(set, p.HELD, p.COOL), p.size_of(set, p.COOL, p.RETIRED), p.size_of(set, p.RETIRED, 2 * p.HELD),
    }
    p.discard(made)
    return counts
  end

  -- How many of a set have marks from `from` to below `to`.
  function p.size_of(set, from, to)
    return call("ZCOUNT", set, p.text(from), "(" .. p.text(to))
  end
end
