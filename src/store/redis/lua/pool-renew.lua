-- After a change of settings, puts the items of some blocks where they belong by the new ones.
-- USES clock, pool
-- KEYS base
-- ARGV clock, fleet
-- ->   1 where there is more to do
p.open(KEYS[1], now_us(), ARGV[2])
p.know()
local from = call("HGET", p.meta, "renewing")
if not from then return 0 end
local blocks = call("ZRANGE", p.base .. "blocks", from, "+inf", "BYSCORE", "LIMIT", "0", "8")
for _, block in ipairs(blocks) do
  for n = tonumber(block) * p.BLOCK, tonumber(block) * p.BLOCK + p.BLOCK - 1 do
    local number = format("%d", n)
    local mark = tonumber(call("ZSCORE", p.all, number) or nil)
    if mark and mark < p.RETIRED then
      local item = p.read(number)
      p.limit(number, item)
      if mark < p.HELD then
        local place = n
        if p.strategy ~= "fifo" then
          local _, _, _, released = p.used(number)
          place = released > 0 and released or item.put * 1000 + n % 1000
        end
        p.mark(number, item.tags, place)
      end
    end
  end
end
local more = #blocks == 8
if more then
  call("HSET", p.meta, "renewing", format("%d", tonumber(blocks[8]) + 1))
else
  call("HDEL", p.meta, "renewing")
end
p.close()
return more and 1 or 0
