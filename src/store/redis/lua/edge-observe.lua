-- Adds to the counts of edges; above the bound, those that were seen longest ago go.
-- USES clock
-- KEYS counts, seen
-- ARGV clock, most, pairs...
-- ->   how many went
--
-- `pairs` are an edge and its count, and so on. What is kept of an edge: `<count> <first seen> <last seen> <minute> <current> <before>`, as in
-- `edge-minutes.ts`.
local counts, seen = KEYS[1], KEYS[2]
local now = now_ms()
local at = math.floor(now / 60000)

for i = 3, #ARGV, 2 do
  local edge, count = ARGV[i], tonumber(ARGV[i + 1])
  local total, first, last, minute, current, before = count, now, now, at, count, 0
  local kept = redis.call("HGET", counts, edge)
  if kept then
    local n = {}
    for number in string.gmatch(kept, "%S+") do n[#n + 1] = tonumber(number) end
    -- What cannot be read begins anew.
    if #n == 6 then
      total, first, last = n[1] + count, n[2], math.max(n[3], now)
      if at <= n[4] then
        minute, current, before = n[4], n[5] + count, n[6]
      elseif at == n[4] + 1 then
        before = n[5]
      end
    end
  end
  local text = {}
  for place, number in ipairs({ total, first, last, minute, current, before }) do text[place] = int(number) end
  redis.call("HSET", counts, edge, table.concat(text, " "))
  redis.call("ZADD", seen, int(last), edge)
end

local above = redis.call("ZCARD", seen) - tonumber(ARGV[2])
if above <= 0 then return 0 end
for _, edge in ipairs(redis.call("ZRANGE", seen, "0", int(above - 1))) do
  redis.call("HDEL", counts, edge)
  redis.call("ZREM", seen, edge)
end
return above
