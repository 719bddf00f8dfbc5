-- Which items match. What is asked for comes as a text: groups, one for each tag named, parted by spaces; in each the tag's values,
-- parted by commas.

-- See `p.know`.
function p.know_finding()
  -- Groups of sets: an item matches that is in one set of each. The smallest is the first; one group of all items where no tag is named.
  function p.groups_of(where)
    local groups = {}
    for text in string.gmatch(where, "[^ ]+") do
      local sets = {}
      for value in string.gmatch(text, "[^,]+") do sets[#sets + 1] = p.base .. "tag:" .. value end
      groups[#groups + 1] = { sets = sets }
    end
    if #groups == 0 then return { { sets = { p.all } } } end
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

  -- How many of a set have marks from `from` to below `to`.
  function p.size_of(set, from, to)
    return call("ZCOUNT", set, p.text(from), "(" .. p.text(to))
  end
end
