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

local function take(found)
  local items, numbers = {}, {}
  for i, one in ipairs(found) do
    local number, item = one.number, one.item
    local uses, score = p.used(number)
    local claim = {
      token = format("%d", p.next()), till = p.now + hold, since = p.now, hold = hold, auto = ARGV[6],
      uses = uses + 1, score = score, holder = holder, request = request, by = ARGV[9],
    }
    p.write_claim(number, claim)
    p.mark(number, item.tags, p.held_mark(item, claim.uses, claim.till))
    items[i], numbers[i] = told(number, item, claim), number
  end
  for i = 1, n, 4000 do call("SADD", p.base .. "holder:" .. holder, unpack(numbers, i, math.min(i + 3999, n))) end
  call("HSET", p.base .. "requests", request, table.concat(numbers, " "))
  p.wake(p.now + hold)
  p.count("claimed", n)
  p.close()
  return { "claimed", now, items }
end

-- The usual case, in few steps: nothing is to be settled, nobody stands in line, and one set tells of all that match.
local function look()
  if p.now >= p.due or n ~= 1 or p.strategy == "random" or string.find(where, "[ ,]") then return end
  if call("HEXISTS", p.base .. "requests", request) == 1 or call("EXISTS", p.base .. "line:" .. where) == 1 then return end
  local set = where == "" and p.all or p.base .. "tag:" .. where
  local number, mark = unpack(call("ZRANGE", set, "0", "0", "WITHSCORES"))
  mark = tonumber(mark or p.RETIRED)
  if mark < p.HELD then
    p.know()
    p.know_claims()
    local item = p.read(number)
    local ends = p.end_of(item)
    if ends == 0 or ends > p.now then return take({ { number = number, item = item } }) end
  elseif ARGV[10] == "" then
    local free_at = mark < p.LAST and mark - p.HELD + p.cooldown or math.huge
    if mark < p.RETIRED then
      local first = call("ZRANGE", set, p.text(p.COOL), "(" .. p.text(p.RETIRED), "BYSCORE", "LIMIT", "0", "1", "WITHSCORES")[2]
      if first then free_at = math.min(free_at, tonumber(first) - p.COOL) end
    end
    return { "none", now, "", free_at < math.huge and format("%d", free_at) or "" }
  end
end

local answer = look()
if answer then return answer end

p.know()
p.know_claims()
p.know_lines()
p.know_picking()
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

local first = p.first_in_line(where)
local found = {}
if not first or first == request then found = p.pick(groups, n, ARGV[11]) end
if n > 0 and #found == n then
  if first then p.step_out(request, p.read_waiter(request)) end
  return take(found)
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
