-- Appends entries in order, then prunes by age and by length, in one atomic step.
-- USES clock
-- KEYS stream, meta
-- ARGV clock, hint, fleet, producer, seq, entries...
-- ->   length, or {length, trimmed, expired} where something was pruned | "duplicate" | "undeclared"
--
-- `entries` are pairs head, tail; the stored text is head .. ts .. tail. Payloads are never parsed.
-- Scores grow strictly, so equal times cannot put entries in alphabetical order; ts is the whole part of the score, so an
-- entry's age is exact even where more entries than fit into one millisecond have run into the next.
--
-- This is the hottest script, and turning numbers into text is what costs most in it. So numbers go to commands as they are
-- (Redis writes all 17 digits); only where they become part of a text, `..` does it: 14 digits hold every millisecond.
local call = redis.call
local stream, meta = KEYS[1], KEYS[2]
local hint, fleet, producer, seq = ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local operation = "op:" .. producer
local kept = call("HMGET", meta, "maxLength", "ttlMs", "last", "pushed", operation)
if not kept[1] then return "undeclared" end
if kept[5] and tonumber(seq) <= tonumber(string.match(kept[5], "^%d+")) then return "duplicate" end

local now = now_ms()
local max_length, ttl, last = tonumber(kept[1]), tonumber(kept[2]), tonumber(kept[3]) or 0

-- A double holds so many scores per millisecond: 4096 while the time needs 41 bits (until 2039), then half as many.
local step = math.max(now, last) < 2199023255552 and 1 / 4096 or 1 / 2048
local count = (#ARGV - 5) / 2
local score = math.max(now - step, last)
local ts, stamp = -1, tostring(now)

-- A set holds equal texts once. Entries alike in every byte get spaces behind their time, which JSON passes over.
local function add_twins(args, from)
  for i = 1, #args, 2 do
    local own, text = args[i], args[i + 1]
    if tonumber(call("ZSCORE", stream, text)) ~= own then
      local at = 6 + 2 * from + i - 1
      text = ARGV[at] .. math.floor(own) .. " "
      while call("ZADD", stream, "NX", own, text .. ARGV[at + 1]) == 0 do text = text .. " " end
    end
  end
end

local from = 0
while from < count do
  local to = math.min(from + 500, count)
  local args, filled = {}, 0
  for i = from, to - 1 do
    score = score + step
    if score >= ts + 1 then
      ts = math.floor(score)
      stamp = tostring(ts)
    end
    args[filled + 1] = score
    args[filled + 2] = ARGV[6 + 2 * i] .. stamp .. ARGV[7 + 2 * i]
    filled = filled + 2
  end
  if call("ZADD", stream, "NX", unpack(args, 1, filled)) < to - from then add_twins(args, from) end
  from = to
end

-- Up to the last score of the last millisecond that is too old.
local expired = call("ZREMRANGEBYSCORE", stream, "-inf", now - ttl + 1 - step)
local length = call("ZCARD", stream)
local woken = length > 0 and length <= count
local trimmed = 0
if length > max_length then
  trimmed = call("ZREMRANGEBYRANK", stream, 0, length - max_length - 1)
  length = length - trimmed
end

call(
  "HSET", meta,
  "last", score,
  "pushed", (tonumber(kept[4]) or 0) + count,
  operation, seq .. "|" .. stamp
)
if woken then call("PUBLISH", hint, fleet) end
if trimmed == 0 and expired == 0 then return length end
if trimmed > 0 then call("HINCRBY", meta, "trimmed", trimmed) end
if expired > 0 then call("HINCRBY", meta, "expired", expired) end
return { length, trimmed, expired }
