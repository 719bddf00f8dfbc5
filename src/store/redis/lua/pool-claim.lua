-- Claims items for a holder: as many as are asked for, or none.
-- USES clock, pool, pool-hold, pool-ends, pool-line, pool-settle, pool-find, pool-pick
-- KEYS base
-- ARGV clock, fleet, where, n, holdMs, auto, request, holder, by, patienceMs, seed
-- ->   {"undeclared"} | {"claimed", now, items} | {"none", now, position in line or "", when one is free at the latest or ""}
--
-- An item is {id, payload, tags as JSON, token, uses, score, until}. `patienceMs` is "" for those who do not stand in line.
local where, n, hold, request, holder = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[7], ARGV[8]
p.open(KEYS[1], now_us(), ARGV[2])
if not p.declared then return { "undeclared" } end
local now = format("%d", p.now)

local function told(number, item, claim)
  return { item.id, p.payload(number, item), item.json, claim.token, claim.uses, claim.score, claim.till }
end

local groups = p.groups_of(where)
p.settle(100 + n, groups[1].sets)
-- A repeat is answered with the claims that the first call got, as long as they hold.
local granted = call("HGET", p.base .. "requests", request)
if granted then
  local items = {}
  for number in string.gmatch(granted, "%d+") do
    local claim = p.read_claim(number)
    if claim.till > p.now then items[#items + 1] = told(number, p.read(number), claim) end
  end
  if #items > 0 then
    p.close()
    return { "claimed", now, items }
  end
end

local function take(number, item)
  local uses, score = p.used(number)
  local claim = {
    token = format("%d", p.next()), till = p.now + hold, since = p.now, hold = hold, auto = ARGV[6],
    uses = uses + 1, score = score, holder = holder, request = request, by = ARGV[9],
  }
  p.write_claim(number, claim)
  p.mark(number, item.tags, p.held_mark(item, claim.uses, claim.till))
  call("SADD", p.base .. "holder:" .. holder, number)
  return told(number, item, claim)
end

local first = p.first_in_line(where)
local found = {}
if not first or first == request then found = p.pick(groups, n, ARGV[11]) end
if #found == n then
  local items, numbers = {}, {}
  for i, one in ipairs(found) do
    items[i], numbers[i] = take(one.number, one.item), one.number
  end
  if n > 0 then
    call("HSET", p.base .. "requests", request, table.concat(numbers, " "))
    p.wake(p.now + hold)
    p.count("claimed", n)
  end
  if first == request then p.step_out(request, p.read_waiter(request)) end
  p.close()
  return { "claimed", now, items }
end
local position = ""
if ARGV[10] ~= "" then
  p.stand(request, { where = where, n = ARGV[4], holder = holder, by = ARGV[9] }, tonumber(ARGV[10]))
  position = call("ZRANK", p.base .. "line:" .. where, request)
else
  local waiter = first and p.read_waiter(request)
  if waiter then p.step_out(request, waiter) end
end
local free_at = p.next_free(groups)
p.close()
return { "none", now, position, free_at }
