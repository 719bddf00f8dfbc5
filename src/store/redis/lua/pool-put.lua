-- Puts items in, in order.
-- USES clock, pool, pool-ends
-- KEYS base
-- ARGV clock, fleet, items...
-- ->   "undeclared" | for each item "put" or "exists"
--
-- An item is its id, payload, tags, tags as JSON and time to live in ms or 0.
p.open(KEYS[1], now_us(), ARGV[2])
p.know()
if not p.declared then return "undeclared" end

-- Past its time to live, though nobody has looked.
function p.is_gone(number)
  local expires = p.read(number).expires
  if expires == 0 or expires > p.now then return false end
  local state = p.state_of(tonumber(call("ZSCORE", p.all, number)))
  return state == "free" or state == "cooling"
end

local outcomes, filled, blocks = {}, {}, {}
for i = 3, #ARGV, 5 do
  local id, ttl = ARGV[i], tonumber(ARGV[i + 4])
  local known = call("HGET", p.ids, id)
  if known and p.is_gone(known) then
    p.know_ends()
    p.expire(known, p.read(known))
    known = false
  end
  if known then
    outcomes[#outcomes + 1] = "exists"
  else
    p.stirred = true
    p.seq = p.seq + 1
    local number = format("%d", p.seq)
    local item = { put = p.now, expires = ttl > 0 and p.now + ttl or 0, id = id, tags = ARGV[i + 2], json = ARGV[i + 3] }
    call("HSET", p.ids, id, number)
    p.write(number, item, ARGV[i + 1])
    local place = p.place()
    p.mark(number, item.tags, p.strategy == "fifo" and p.seq or place)
    if p.end_of(item) > 0 then p.limit(number, item) end
    local block = math.floor(p.seq / p.BLOCK)
    if not filled[block] then blocks[#blocks + 1] = block end
    filled[block] = (filled[block] or 0) + 1
    outcomes[#outcomes + 1] = "put"
    p.count("put", 1)
  end
end
for _, block in ipairs(blocks) do
  local name = format("%d", block)
  call("HINCRBY", p.base .. "sizes", name, filled[block])
  call("ZADD", p.base .. "blocks", name, name)
end
p.close()
return outcomes
