-- After a change of settings, puts the items of some blocks where they belong by the new ones.
-- USES clock, pool-head, pool, pool-item
-- KEYS base
-- ARGV clock, fleet
-- FLAGS allow-oom
-- ->   1 where there is more to do
p.open(KEYS[1], now_us(), ARGV[2])
p.know()
local meta = p.base .. "meta"
-- `<block to go on with> <last place given to an item that was never released>`: such items keep the order of their puts.
local from, last = string.match(call("HGET", meta, "renewing") or "", "^(%d+) (%d+)$")
if not from then return 0 end
last = tonumber(last)
local blocks = call("ZRANGE", p.base .. "blocks", from, "+inf", "BYSCORE", "LIMIT", "0", "8")
for _, block in ipairs(blocks) do
  for n = tonumber(block) * p.BLOCK, tonumber(block) * p.BLOCK + p.BLOCK - 1 do
    local number = format("%d", n)
    local mark = p.mark_of(number)
    if mark and mark < p.RETIRED then
      local item = p.read(number)
      p.limit(number, item)
      if mark < p.HELD then
        local place = n
        if p.strategy ~= "fifo" then
          place = item.place
          if place == 0 then
            last = math.max(item.put * 1000, last + 1)
            place = last
          end
        end
        p.mark(number, item.tags, place)
      end
    end
  end
end
local more = #blocks == 8
if more then
  call("HSET", meta, "renewing", format("%d %d", tonumber(blocks[8]) + 1, last))
else
  call("HDEL", meta, "renewing")
end
p.close()
return more and 1 or 0
