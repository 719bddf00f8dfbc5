-- Writes new tasks. A list is where its tasks begin in ARGV (`at`), what only some of them have (`extras`), and their `keys`.

-- What is to be added to lanes is gathered in `q.lots`, and added all at once.
function q.write_lots()
  local keyed = {}
  for i = 1, #q.lanes do
    local lane = q.lanes[i]
    local lot = q.lots[lane]
    q.add(q.base .. "lane:" .. lane, lot)
    if lane ~= q.PLAIN then
      for n = 1, #lot do keyed[#keyed + 1] = lot[n] end
    end
  end
  q.add(q.base .. "keyed", keyed)
  q.lots, q.lanes = {}, {}
end

-- What all tasks with equal fixed values have in common, for the one that begins there in ARGV. A task bears the flag 1 where it has more
-- than these that concern its end.
function q.kind_at(at)
  local fixed = q.common or ARGV[at + 2]
  local kind = q.kinds[fixed]
  if not kind then
    local priority, ttl = string.match(fixed, "^(%S+) %S+ %S+ (%S+)$")
    local plain = "0 " .. fixed .. " " .. q.stamp
    local band = 1000 - tonumber(priority)
    kind = { band = band, floor = band * q.BAND, ttl = tonumber(ttl), plain = plain, fixed = fixed }
    q.kinds[fixed] = kind
  end
  return kind
end

-- When it may run; nothing for at once.
function q.due_of(extras)
  local due = tonumber(extras.at) or q.now + (tonumber(extras.delay) or 0)
  if extras.mode == "debounce" then due = q.now + tonumber(extras.window) end
  if due > q.now then return due end
end

-- Writes what only some tasks have, of a new task or of one that was replaced. Answers the lane that it is to enter, if it may run now.
function q.write_extras(id, kind, extras, submitted)
  local due = q.due_of(extras)
  local flag = (extras.dedupe or extras.q or extras.j or kind.ttl > 0) and "1 " or "0 "
  local fields = { "s", due and "s" or "w", "v", flag .. kind.fixed .. " " .. submitted }
  local function set(name, value)
    if not value then return end
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  if kind.ttl > 0 then
    local expires = format("%d", (due or q.now) + kind.ttl)
    set("e", expires)
    call("ZADD", q.base .. "ttl", expires, id)
    q.soon(tonumber(expires))
  end
  set("k", extras.k)
  set("d", extras.dedupe)
  set("q", extras.q)
  set("j", extras.j and extras.tick .. " " .. extras.j)
  if due then
    local text = format("%d", due)
    set("u", text)
    call("ZADD", q.base .. "delayed", text, id)
    q.soon(due)
  end
  call("HSET", q.tasks .. id, unpack(fields))
  if not due then return extras.k or q.PLAIN end
end

function q.write(list, n)
  local at, extras = list.at[n], list.extras[n]
  local id, kind = ARGV[at], q.kind_at(at)
  q.seq = q.seq + 1
  local place = format("%d", kind.floor + q.seq)
  local lane = "-"
  if extras or kind.ttl > 0 then
    call("HSET", list.keys[n], "p", ARGV[at + 1], "o", place)
    -- What replaces it later has no say in how its submitter knows it.
    if extras and extras.i then call("HSET", list.keys[n], "i", extras.i) end
    lane = q.write_extras(id, kind, extras or {}, q.stamp)
    if not lane then return end
  else
    call("HSET", list.keys[n], "p", ARGV[at + 1], "v", kind.plain, "o", place, "s", "w")
  end
  q.touch(lane, kind.band)
  local lot = q.lots[lane]
  if not lot then
    lot = {}
    q.lots[lane] = lot
    q.lanes[#q.lanes + 1] = lane
  end
  local filled = #lot
  lot[filled + 1], lot[filled + 2] = place, id
end

-- Whether whoever waits may have a new task that is like all others of this step: nothing else is there to be claimed.
function q.may_hand(list)
  if q.idle == 0 or not q.common or q.concurrency > 0 or #q.lanes > 0 then return false end
  if #list.at == 0 or q.kind_at(list.at[1]).ttl > 0 then return false end
  q.refresh_once()
  return call("EXISTS", q.ring) == 0
end

function q.any_known(keys)
  for from = 1, #keys, 4000 do
    if call("EXISTS", unpack(keys, from, math.min(from + 3999, #keys))) > 0 then return true end
  end
  return false
end

-- Unfinished tasks that are not active. Remembered while only new ones come.
function q.length()
  if not q.present then
    q.write_lots()
    local base = q.base
    q.present = call("ZCARD", base .. "lane:-") + call("ZCARD", base .. "keyed") + call("ZCARD", base .. "delayed")
  end
  return q.present
end

-- What time has ended does not fill the queue.
function q.refresh_once()
  if q.refreshed then return end
  q.refreshed = true
  q.write_lots()
  q.refresh()
  q.present = false
end

function q.submit(list)
  local size = #list.at
  local special = list.special or q.any_known(list.keys)
  if special then q.write_lots() end
  if q.max_length > 0 then
    local growth = special and q.growth_of(list) or size
    if growth > 0 and q.length() + growth > q.max_length then
      q.refresh_once()
      if q.length() + growth > q.max_length then
        q.count("n:refused", size)
        return { "full", q.length(), q.max_length }
      end
    end
    q.present = q.length() + growth
  end
  if special then
    q.present = false
    return q.submit_special(list)
  end
  local left = q.may_hand(list) and q.hand_new(list) or 1
  -- What was handed over does not wait.
  if left > 1 then q.present = false end
  for n = left, size do q.write(list, n) end
  q.count("n:submitted", size)
  return "new"
end
