-- Which free items a claim gets, and when one will be free where it gets none.

-- See `p.know`.
function p.know_picking()
  p.know_finding()
  -- How many items are looked at where several tags are named, before all that match are found at once.
  p.LOOKS = 400

  -- Up to `n` free items that match, those that come first. Items whose life is over are ended on the way.
  function p.pick(groups, n, seed)
    local find = p.strategy == "random" and p.pick_any or p.pick_first
    if groups[1].all then find = p.strategy == "random" and p.pick_any_of_all or p.pick_first_of_all end
    local found, dead, whole = find(groups, n, p.LOOKS + 2 * n, seed)
    if not whole then
      local set, made = p.joined(groups)
      found, dead = find({ { sets = { set } } }, n, math.huge, seed)
      p.discard(made)
    end
    if #dead > 0 then p.know_settling() end
    for _, one in ipairs(dead) do p.end_life(one.number, one.item) end
    return found
  end

  -- A function that takes what fits and lives into `found`, until there are `n`.
  function p.collector(groups, n, found, dead)
    return function(number)
      if not p.fits(groups, number) then return false end
      local item = p.read(number)
      local ends = p.end_of(item)
      local list = ends > 0 and ends <= p.now and dead or found
      list[#list + 1] = { number = number, item = item }
      return #found == n
    end
  end

  function p.pick_first_of_all(groups, n)
    local found, dead = {}, {}
    p.walk_free(p.collector(groups, n, found, dead))
    return found, dead, true
  end

  function p.pick_first(groups, n, looks)
    local found, dead = {}, {}
    local chunk = #groups == 1 and math.min(n, 100) or 50
    local whole = p.walk(groups[1].sets, 0, p.HELD, chunk, looks, p.collector(groups, n, found, dead))
    return found, dead, whole
  end

  -- Draws from the free items of all sets of the first group, without putting back. One that is in several of them counts in the first.
  function p.pick_any(groups, n, looks, seed)
    math.randomseed(seed)
    local sets, sizes, total = groups[1].sets, {}, 0
    for i, set in ipairs(sets) do
      sizes[i] = p.size_of(set, 0, p.HELD)
      total = total + sizes[i]
    end
    local found, dead, moved = {}, {}, {}
    local see = p.collector(groups, n, found, dead)
    while total > 0 do
      if looks == 0 then return found, dead, false end
      looks = looks - 1
      local drawn = math.random(total)
      local rank = moved[drawn] or drawn
      moved[drawn] = moved[total] or total
      total = total - 1
      local i = 1
      while rank > sizes[i] do
        rank = rank - sizes[i]
        i = i + 1
      end
      local place = format("%d", rank - 1)
      local number = call("ZRANGE", sets[i], place, place)[1]
      if not p.is_in({ unpack(sets, 1, i - 1) }, number) and see(number) then break end
    end
    return found, dead, true
  end

  -- Of all free items: draws a block and one of as many places as a block can have, so each item is as likely as any other. Where few are free,
  -- or few that were not drawn, these are all looked at.
  function p.pick_any_of_all(groups, n, looks, seed)
    math.randomseed(seed)
    local found, dead, seen, drawn = {}, {}, {}, 0
    local see = p.collector(groups, n, found, dead)
    local free, first = p.size - call("ZCARD", p.busy), "(" .. p.text(p.HELD)
    while free > 1000 and 2 * (drawn + 1) < free and looks > 0 do
      local bounds = call("ZCOUNT", p.firsts, "0", first)
      local rank = format("%d", math.random(bounds) - 1)
      local block = call("ZRANGE", p.firsts, rank, rank)[1]
      local marks, place = p.base .. "marks:" .. block, math.random(p.BLOCK)
      local some = call("ZCOUNT", marks, "0", first)
      if some == 0 then
        call("ZADD", p.firsts, "XX", call("ZRANGE", marks, "0", "0", "WITHSCORES")[2], block)
      elseif place <= some then
        local number = call("ZRANGE", marks, format("%d", place - 1), format("%d", place - 1))[1]
        if not seen[number] then
          seen[number], drawn, looks = true, drawn + 1, looks - 1
          if see(number) then return found, dead, true end
        end
      end
    end
    local left = {}
    p.walk_free(function(number)
      if not seen[number] then left[#left + 1] = number end
    end)
    for i = #left, 1, -1 do
      local at = math.random(i)
      if see(left[at]) then break end
      left[at] = left[i]
    end
    return found, dead, true
  end

  -- When one that matches and is not free is so at the latest; "" where none is known.
  function p.next_free(groups)
    local at = math.huge
    local function look(from, to, rest)
      p.walk(groups[1].sets, from, to, #groups == 1 and 1 or 50, 100, function(number, mark)
        if not p.fits(groups, number) then return false end
        at = math.min(at, mark - from + rest)
        return true
      end)
    end
    look(p.HELD, p.LAST, p.cooldown)
    look(p.COOL, p.RETIRED, 0)
    return at < math.huge and format("%d", at) or ""
  end
end
