-- Puts items in, in order.
-- USES clock, pool-head, pool, pool-item, pool-ends
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
  local state = p.state_of(p.mark_of(number))
  return state == "free" or state == "cooling"
end

local outcomes, last = {}
for i = 3, #ARGV, 5 do
  local id, ttl = ARGV[i], tonumber(ARGV[i + 4])
  local known = p.number_of(id)
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
    local item = {
      put = p.now, expires = ttl > 0 and p.now + ttl or 0, uses = 0, id = id, tags = ARGV[i + 2], json = ARGV[i + 3],
    }
    call("HSET", p.bucket_of(id), id, number)
    p.size = p.size + 1
    p.part()
    p.set_payload(number, item, ARGV[i + 1])
    p.write(number, item)
    local place = p.place()
    p.mark(number, item.tags, p.strategy == "fifo" and p.seq or place)
    if p.end_of(item) > 0 then p.limit(number, item) end
    local block = format("%d", math.floor(p.seq / p.BLOCK))
    if block ~= last then call("ZADD", p.base .. "blocks", block, block) end
    last = block
    outcomes[#outcomes + 1] = "put"
    p.count("put", 1)
  end
end
p.close()
return outcomes
