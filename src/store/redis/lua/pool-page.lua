-- Items of one state that match, in the order in which they were put, behind a number.
-- USES pool-head, pool, pool-item, pool-find, pool-record
-- KEYS base
-- ARGV state, where, n, after
-- ->   {items, see `pool-record.lua`; number behind which to go on, or "" at the end}
local n, after = tonumber(ARGV[3]), tonumber(ARGV[4])
p.open(KEYS[1], 0, "")
p.know()
p.know_finding()
local bounds = { free = { 0, p.HELD }, held = { p.HELD, p.COOL }, cooling = { p.COOL, p.RETIRED }, retired = { p.RETIRED, 2 * p.HELD } }
local from, to = unpack(bounds[ARGV[1]])
local groups = p.groups_of(ARGV[2])

local items, last = {}, after
local function tell(number, mark)
  items[#items + 1] = p.record(number, mark)
  last = tonumber(number)
end

local few, free = 0, groups[1].all and from == 0
if free then
  few = p.size - call("ZCARD", p.busy)
else
  for _, set in ipairs(groups[1].sets) do few = few + p.size_of(set, from, to) end
end
if few <= 1000 then
  local found = {}
  local function see(number, mark)
    if tonumber(number) > after then found[#found + 1] = { number, mark } end
  end
  if free then p.walk_free(see) else p.walk(groups[1].sets, from, to, 100, math.huge, see) end
  table.sort(found, function(a, b) return tonumber(a[1]) < tonumber(b[1]) end)
  for i, one in ipairs(found) do
    if p.fits(groups, one[1]) then
      if #items == n then return { items, format("%d", last) } end
      tell(one[1], one[2])
    end
  end
  return { items, "" }
end

-- All items are looked at in order, a bounded number of them.
local first = math.floor((after + 1) / p.BLOCK)
local blocks = call("ZRANGE", p.base .. "blocks", format("%d", first), "+inf", "BYSCORE", "LIMIT", "0", "40")
for _, block in ipairs(blocks) do
  local numbers = {}
  local low = tonumber(block) * p.BLOCK
  for number = math.max(low, after + 1), low + p.BLOCK - 1 do numbers[#numbers + 1] = format("%d", number) end
  local marks = call("ZMSCORE", p.base .. "marks:" .. block, unpack(numbers))
  for i, number in ipairs(numbers) do
    local mark = tonumber(marks[i] or nil)
    if mark and mark >= from and mark < to and (free or p.is_in(groups[1].sets, number)) and p.fits(groups, number) then
      if #items == n then return { items, format("%d", last) } end
      tell(number, mark)
    end
  end
  last = low + p.BLOCK - 1
end
return { items, #blocks == 40 and format("%d", last) or "" }
