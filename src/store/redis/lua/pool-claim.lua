-- Claims items for a holder: as many as are asked for, or none.
-- USES clock, pool-head, pool, pool-item, pool-ends, pool-line, pool-settle, pool-find, pool-pick
-- KEYS base
-- ARGV clock, fleet, where, n, holdMs, auto, request, holder, by, patienceMs, seed
-- FLAGS allow-oom
-- ->   {"undeclared"} | {"claimed", now, items} | {"none", now, position in line or "", when one is free at the latest or ""}
--
-- An item is {id, payload, tags as JSON, token, uses, score, until}. `patienceMs` is "" for those who do not stand in line.
local where, n, hold, request, holder = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[7], ARGV[8]
local base, us = KEYS[1], now_us()
local head = read_head(base)
if not head then return { "undeclared" } end
local requests, set = base .. "requests", base .. "tag:" .. where
local one_set = n == 1 and not string.find(where, "[ ,]")
local number, mark

-- One set tells of all that match. Its first is not free, nothing is to be settled, and nobody stands in line or is to.
if one_set and where ~= "" then
  number, mark = unpack(redis.call("ZRANGE", set, "0", "0", "WITHSCORES"))
  mark = tonumber(mark or RETIRED)
end
if mark and mark >= HELD and ARGV[10] == "" then
  local due, cooldown, _, _, _, _, _, _, _, _, _, _, lines, rests = struct.unpack(HEAD, head)
  local ms = math.floor(us / 1000)
  if ms < due and lines == 0 and (mark >= RETIRED or rests <= ms) and redis.call("HEXISTS", requests, request) == 0 then
    return { "none", string.format("%d", ms), "", mark < LAST and string.format("%d", mark - HELD + cooldown) or "" }
  end
end
-- THEN pool

p.open(base, us, ARGV[2], head)
local now = format("%d", p.now)

local function told(number, item)
  return { item.id, p.payload(number, item), p.json_of(item), format("%d", item.token), item.uses, item.score, item.till }
end

local function take(number, item)
  item.token, item.till, item.since, item.hold = p.next(), p.now + hold, p.now, hold
  item.auto, item.alone, item.holder, item.request, item.by = ARGV[6] == "1", n == 1, holder, request, ARGV[9]
  item.uses = item.uses + 1
  p.write(number, item)
  p.mark(number, item.tags, p.held_mark(item))
  return told(number, item)
end

local function close(items)
  p.wake(p.now + hold)
  p.close()
  return { "claimed", now, items }
end

-- The first free item of all, and its mark.
local function first_of_all()
  while true do
    local block, bound = unpack(call("ZRANGE", p.firsts, "0", "0", "WITHSCORES"))
    bound = tonumber(bound or RETIRED)
    if bound >= HELD then return nil, bound end
    local number, mark = unpack(call("ZRANGE", p.base .. "marks:" .. block, "0", "0", "WITHSCORES"))
    if tonumber(mark) == bound then return number, bound end
    -- Its first item was claimed by a tag.
    call("ZADD", p.firsts, mark, block)
  end
end

-- The usual case, in few steps: nothing is to be settled, nobody stands in line, and the first that matches is free.
local function look()
  if p.now >= p.due or not one_set or p.strategy == "random" then return end
  if p.lines > 0 and call("EXISTS", base .. "line:" .. where) == 1 then return end
  if where == "" then number, mark = first_of_all() end
  if mark >= HELD then return end
  local item = p.read(number)
  local ends = p.end_of(item)
  if ends > 0 and ends <= p.now or call("HSETNX", requests, request, number) == 0 then return end
  call("SADD", base .. "holder:" .. holder, number)
  return close({ take(number, item) })
end

local answer = look()
if answer then return answer end
-- THEN pool-item, pool-ends, pool-line, pool-settle, pool-find, pool-pick

p.know()
p.know_lines()
p.know_picking()
local groups = p.groups_of(where)
p.settle(100 + n, groups[1].sets)
-- A repeat is answered with the claims that the first call got, as long as they hold.
local granted = call("HGET", requests, request)
if granted then
  local items = {}
  for number in string.gmatch(granted, "%d+") do
    local item = p.read(number)
    if item.till > p.now then items[#items + 1] = told(number, item) end
  end
  if #items > 0 then
    p.close()
    return { "claimed", now, items }
  end
end

local first = p.first_in_line(where)
local found = {}
if not first or first == request then found = p.pick(groups, n, ARGV[11]) end
if n > 0 and #found == n then
  if first then p.step_out(request, p.read_waiter(request)) end
  local items, numbers = {}, {}
  for i, one in ipairs(found) do items[i], numbers[i] = take(one.number, one.item), one.number end
  for i = 1, n, 4000 do call("SADD", base .. "holder:" .. holder, unpack(numbers, i, math.min(i + 3999, n))) end
  call("HSET", requests, request, table.concat(numbers, " "))
  return close(items)
end
local position = ""
if ARGV[10] ~= "" then
  p.stand(request, { where = where, n = ARGV[4], holder = holder, by = ARGV[9] }, tonumber(ARGV[10]))
  position = call("ZRANK", base .. "line:" .. where, request)
else
  local waiter = first and p.read_waiter(request)
  if waiter then p.step_out(request, waiter) end
end
local free_at = p.next_free(groups)
p.close()
return { "none", now, position, free_at }
