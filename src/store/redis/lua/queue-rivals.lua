-- Submissions in whose way others may stand: their id, their dedupe key or their tick was submitted before.

local function is_unfinished(state) return state == "w" or state == "s" or state == "a" end

-- Which task stands in the way of a dedupe key, and how: "ignored", "replaced", "superseded", or nothing. `pending`: keys of this list.
function q.rival_of(extras, pending)
  local till, id = "0", pending[extras.dedupe]
  local state = id and "w"
  if not id then
    local owner = call("HGET", q.base .. "dedupe", extras.dedupe)
    if not owner then return end
    till, id = string.match(owner, "^(%d+) (.*)$")
    q.refresh_one(id)
    state = call("HGET", q.tasks .. id, "s")
  end
  local mode = extras.mode
  if mode == "throttle" and (is_unfinished(state) or tonumber(till) > q.now) then return "ignored", id, state end
  if not is_unfinished(state) then return end
  if mode == "ignore" then return "ignored", id, state end
  if mode == "supersede" then return "superseded", id, state end
  if state ~= "a" then return "replaced", id, state end
end

function q.has_fired(extras)
  local last = extras.j and call("HGET", q.base .. "ticks", extras.j)
  return last and tonumber(extras.tick) <= tonumber(last)
end

-- Its schedule is another by now than its tick was told by, or gone.
function q.is_outdated(extras)
  return extras.rev and string.match(call("HGET", q.base .. "schedules", extras.j) or "", "^%d+") ~= extras.rev
end

-- By how many tasks a list would make the queue longer.
function q.growth_of(list)
  local growth, seen, pending, ticks = 0, {}, {}, {}
  for n = 1, #list.at do
    local id, extras = ARGV[list.at[n]], list.extras[n] or {}
    local new = not seen[id] and call("EXISTS", list.keys[n]) == 0 and not q.has_fired(extras) and not q.is_outdated(extras)
    seen[id] = true
    if new and extras.j then
      local tick = tonumber(extras.tick)
      new = tick > (ticks[extras.j] or -math.huge)
      if new then ticks[extras.j] = tick end
    end
    if new and extras.dedupe then
      local how, _, state = q.rival_of(extras, pending)
      if how == "superseded" and state ~= "a" then growth = growth - 1 end
      new = how == nil or how == "superseded"
      if new then pending[extras.dedupe] = id end
    end
    if new then growth = growth + 1 end
  end
  return growth
end

function q.own_dedupe(id, extras)
  local till = string.match(call("HGET", q.base .. "dedupe", extras.dedupe) or "0 ", "^%d+")
  if extras.mode == "throttle" then
    till = format("%d", q.now + tonumber(extras.window))
    call("ZADD", q.base .. "windows", till, extras.dedupe)
  end
  call("HSET", q.base .. "dedupe", extras.dedupe, till .. " " .. id)
end

-- Gives a task that is not active the payload and options of another submission.
function q.replace(id, list, n)
  local at, extras = list.at[n], list.extras[n]
  local key, kind = q.tasks .. id, q.kind_at(at)
  local state, lane, old_place, fixed = unpack(call("HMGET", key, "s", "k", "o", "v"))
  q.withdraw(id, state, lane)
  -- Whoever asked for it still waits for it.
  call("HDEL", key, "k", "e", "u", "g")
  if call("HEXISTS", key, "q") == 1 then extras.q = "1" end
  local place = format("%d", kind.floor + tonumber(old_place) % q.BAND)
  call("HSET", key, "p", ARGV[at + 1], "o", place)
  local into = q.write_extras(id, kind, extras, string.match(fixed, "(%d+)$"))
  if not into then return end
  call("HSET", key, "u", q.stamp)
  q.enter(id, into, place)
end

-- Answers the task that stands for a submission, and how it does.
function q.submit_one(list, n)
  local id, extras = ARGV[list.at[n]], list.extras[n] or {}
  if call("EXISTS", list.keys[n]) == 1 then
    if extras.q then ask(q.base, id) end
    return id, "repeated"
  end
  if q.has_fired(extras) then return id, "fired" end
  if q.is_outdated(extras) then return id, "outdated" end
  if extras.dedupe then
    local how, other = q.rival_of(extras, {})
    if how == "ignored" or how == "replaced" then
      q.count("n:duplicates", 1)
      if how == "replaced" then
        q.replace(other, list, n)
      elseif extras.q then
        ask(q.base, other)
      end
      return other, how
    end
    if how == "superseded" then q.cancel(other) end
    q.own_dedupe(id, extras)
  end
  if extras.j then call("HSET", q.base .. "ticks", extras.j, extras.tick) end
  q.count("n:submitted", 1)
  q.write(list, n)
  q.write_lots()
  return id, "submitted"
end

function q.submit_special(list)
  local answer = {}
  for n = 1, #list.at do
    answer[2 * n - 1], answer[2 * n] = q.submit_one(list, n)
    -- A lane that has lost its last task to this one leaves the ring before the next may enter.
    q.reseat()
  end
  q.flush()
  return answer
end
