-- Submits lists of tasks, each as a whole or not at all.
-- USES clock, queue, queue-lanes, queue-ends, queue-refresh
-- KEYS base
-- ARGV clock, fleet, lists...
-- ->   per list: "new" (all were submitted) | {id, outcome, id, outcome, …} | {"full", length, maxLength}; or "undeclared"
--
-- `lists`: each begins with its number of tasks. A task is its id, payload, `<priority> <maxAttempts> <timeoutMs> <ttlMs>`, and the
-- number of further pairs, then these: k lane, delay, at, dedupe, mode, window, q asked, j schedule, tick.
local fleet = ARGV[2]
open(KEYS[1], now_us())
if not declared then return "undeclared" end

-- What is to be added to lanes, written at once at the end of each list.
local lots, lanes = {}, {}

local function write_lots()
  for i = 1, #lanes do
    local lane = lanes[i]
    many("ZADD", base .. "lane:" .. lane, lots[lane])
    if lane ~= PLAIN then many("ZADD", base .. "keyed", lots[lane]) end
  end
  lots, lanes = {}, {}
end

-- What all tasks with equal fixed values have in common.
local kinds = {}
local function kind_of(fixed)
  local kind = kinds[fixed]
  if not kind then
    local priority, ttl = string.match(fixed, "^(%S+) %S+ %S+ (%S+)$")
    kind = { floor = (1000 - tonumber(priority)) * BAND, ttl = tonumber(ttl), fixed = fixed .. " " .. stamp }
    kinds[fixed] = kind
  end
  return kind
end

local function lot_of(lane)
  local lot = lots[lane]
  if not lot then
    touch(lane)
    lot = {}
    lots[lane] = lot
    lanes[#lanes + 1] = lane
  end
  return lot
end

-- When it may run; nothing for at once.
local function due_of(extras)
  local due = tonumber(extras.at) or now + (tonumber(extras.delay) or 0)
  if extras.mode == "debounce" then due = now + tonumber(extras.window) end
  if due > now then return due end
end

local function own_dedupe(id, extras)
  local till = extras.mode == "throttle" and now + tonumber(extras.window) or 0
  call("HSET", base .. "dedupe", extras.dedupe, format("%d ", till) .. id)
  if till > 0 then call("ZADD", base .. "windows", format("%d", till), extras.dedupe) end
end

-- Fields of a task that only some have.
local function write_extras(id, place, kind, extras)
  local due = extras and due_of(extras)
  local fields = { "s", due and "s" or "w" }
  local function set(name, value)
    if not value then return end
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  if kind.ttl > 0 then
    local expires = format("%d", (due or now) + kind.ttl)
    set("e", expires)
    call("ZADD", base .. "ttl", expires, id)
  end
  local lane = PLAIN
  if extras then
    lane = extras.k or PLAIN
    set("k", extras.k)
    set("d", extras.dedupe)
    set("q", extras.q)
    set("j", extras.j and extras.tick .. " " .. extras.j)
  end
  if due then
    local text = format("%d", due)
    set("u", text)
    call("ZADD", base .. "delayed", text, id)
  end
  call("HSET", tasks .. id, unpack(fields))
  if not due then return lane end
end

local function write(at, extras)
  local id, kind = ARGV[at], kind_of(ARGV[at + 2])
  seq = seq + 1
  local place = format("%d", kind.floor + seq)
  local lane = PLAIN
  if extras or kind.ttl > 0 then
    call("HSET", tasks .. id, "p", ARGV[at + 1], "v", kind.fixed, "o", place)
    lane = write_extras(id, place, kind, extras)
  else
    call("HSET", tasks .. id, "p", ARGV[at + 1], "v", kind.fixed, "o", place, "s", "w")
  end
  if lane then
    local lot = lot_of(lane)
    local n = #lot
    lot[n + 1], lot[n + 2] = place, id
  end
end

-- Gives a task that is not active the payload and options of another submission.
local function replace(id, at, extras)
  local key, kind = tasks .. id, kind_of(ARGV[at + 2])
  local old = call("HMGET", key, "s", "k", "o", "v")
  local lane = old[2] or PLAIN
  touch(lane)
  withdraw(id, old[1], lane)
  call("HDEL", key, "k", "e", "u", "g")
  local submitted = string.match(old[4], "(%d+)$")
  local place = format("%d", kind.floor + tonumber(old[3]) % BAND)
  call("HSET", key, "p", ARGV[at + 1], "v", ARGV[at + 2] .. " " .. submitted, "o", place)
  local into = write_extras(id, place, kind, extras)
  if not into then return end
  call("HSET", key, "u", stamp)
  enter(id, into, place)
end

-- Which task stands in the way of a submission, and how: "ignored", "replaced", "superseded", or nothing.
local function rival_of(extras, pending)
  local till, id = 0, pending[extras.dedupe]
  local state = id and "w"
  if not id then
    local owner = call("HGET", base .. "dedupe", extras.dedupe)
    if not owner then return end
    till, id = string.match(owner, "^(%d+) (.*)$")
    state = call("HGET", tasks .. id, "s")
  end
  local unfinished = state == "w" or state == "s" or state == "a"
  local mode = extras.mode
  if mode == "throttle" and (unfinished or tonumber(till) > now) then return "ignored", id, state end
  if not unfinished then return end
  if mode == "ignore" then return "ignored", id, state end
  if mode == "supersede" then return "superseded", id, state end
  if state ~= "a" then return "replaced", id, state end
end

local function fired(extras)
  local last = extras.j and call("HGET", base .. "ticks", extras.j)
  return last and tonumber(extras.tick) <= tonumber(last)
end

-- By how many tasks a list would make the queue longer.
local function growth_of(at, all)
  local growth, seen, pending, ticks = 0, {}, {}, {}
  for i = 1, #at do
    local id, extras = ARGV[at[i]], all[i]
    local new = not seen[id] and call("EXISTS", tasks .. id) == 0
    seen[id] = true
    if new and extras and extras.j then
      local tick = tonumber(extras.tick)
      new = not fired(extras) and tick > (ticks[extras.j] or -math.huge)
      if new then ticks[extras.j] = tick end
    end
    if new and extras and extras.dedupe then
      local how, _, state = rival_of(extras, pending)
      if how == "superseded" and state ~= "a" then growth = growth - 1 end
      new = how == nil or how == "superseded"
      if new then pending[extras.dedupe] = id end
    end
    if new then growth = growth + 1 end
  end
  return growth
end

-- One task where others may stand in its way. Answers which stands for it, and how.
local function submit_beside(at, extras)
  local id = ARGV[at]
  if call("EXISTS", tasks .. id) == 1 then return id, "repeated" end
  if extras and fired(extras) then return id, "fired" end
  if extras and extras.dedupe then
    local how, other = rival_of(extras, {})
    if how == "ignored" then
      count("n:duplicates", 1)
      return other, how
    end
    if how == "replaced" then
      count("n:duplicates", 1)
      replace(other, at, extras)
      return other, how
    end
    if how == "superseded" then cancel(other, fleet) end
    own_dedupe(id, extras)
  end
  if extras and extras.j then call("HSET", base .. "ticks", extras.j, extras.tick) end
  count("n:submitted", 1)
  write(at, extras)
  write_lots()
  return id, "submitted"
end

local function length()
  return call("ZCARD", base .. "lane:-") + call("ZCARD", base .. "keyed") + call("ZCARD", base .. "delayed")
end

local function any_known(names)
  for from = 1, #names, 4000 do
    if call("EXISTS", unpack(names, from, math.min(from + 3999, #names))) > 0 then return true end
  end
  return false
end

-- What time has ended neither fills the queue nor bears a dedupe key.
local refreshed = false
local function settle_time()
  if refreshed then return end
  refreshed = true
  write_lots()
  refresh(fleet)
end

-- Unfinished tasks that are not active; known while only new ones come.
local present
local function length()
  if present then return present end
  write_lots()
  present = call("ZCARD", base .. "lane:-") + call("ZCARD", base .. "keyed") + call("ZCARD", base .. "delayed")
  return present
end

local function submit_list(at, all, names, twice)
  local beside = twice or any_known(names)
  for _, extras in pairs(all) do
    if extras.dedupe or extras.j then beside = true end
  end
  if beside then
    write_lots()
    settle_time()
  end
  if max_length > 0 then
    local growth = beside and growth_of(at, all) or #at
    if growth > 0 and length() + growth > max_length then
      settle_time()
      present = nil
      if length() + growth > max_length then
        count("n:refused", #at)
        return { "full", length(), max_length }
      end
    end
    present = length() + growth
  end
  if not beside then
    for i = 1, #at do write(at[i], all[i]) end
    count("n:submitted", #at)
    return "new"
  end
  local stand = {}
  for i = 1, #at do
    local id, how = submit_beside(at[i], all[i])
    stand[2 * i - 1], stand[2 * i] = id, how
  end
  flush()
  present = nil
  return stand
end

local answer = {}
local i = 3
while i <= #ARGV do
  local size = tonumber(ARGV[i])
  i = i + 1
  local at, all, names, seen, twice = {}, {}, {}, {}, false
  for n = 1, size do
    local id, pairs_given = ARGV[i], ARGV[i + 3]
    at[n], names[n] = i, tasks .. id
    if seen[id] then twice = true end
    seen[id] = true
    i = i + 4
    if pairs_given ~= "0" then
      local extras = {}
      for _ = 1, tonumber(pairs_given) do
        extras[ARGV[i]] = ARGV[i + 1]
        i = i + 2
      end
      all[n] = extras
    end
  end
  answer[#answer + 1] = submit_list(at, all, names, twice)
end
write_lots()
reseat()
close(fleet)
return answer
