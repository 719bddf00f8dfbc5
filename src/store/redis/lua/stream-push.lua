-- Appends entries in order, then prunes by age and by length, in one atomic step.
-- USES clock
-- KEYS stream, meta
-- ARGV clock, hint, fleet, producer, seq, entries...
-- ->   length, or {length, trimmed, expired} where something was pruned | "duplicate" | "undeclared"
--
-- `entries` are pairs head, tail; the stored text is head .. ts .. tail. Payloads are never parsed.
-- A score is the time and a place within its millisecond, `<ms>.<five digits>`. Scores grow strictly, so equal times cannot put
-- entries in alphabetical order; ts is the whole part of the score, so an entry's age is exact even where more entries than fit
-- into one millisecond have run into the next.
--
-- This is the hottest script, and what costs most in it is to turn a number with 17 digits into text, which Redis also does for
-- numbers given to commands. So scores are put together as text, and counts are written as the whole numbers that they are.
local call, format = redis.call, string.format
local stream, meta = KEYS[1], KEYS[2]
local hint, fleet, producer, seq = ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local operation = "op:" .. producer
local kept = call("HMGET", meta, "maxLength", "ttlMs", "last", "pushed", operation)
local max_length, ttl = tonumber(kept[1]), tonumber(kept[2])
local last, pushed, applied = kept[3], kept[4], kept[5]
if not max_length then return "undeclared" end
if applied and tonumber(seq) <= tonumber(string.match(applied, "^%d+")) then return "duplicate" end

local now = now_ms()
local count = (#ARGV - 5) / 2

-- A double tells places apart that lie 0.00025 apart while the time needs 41 bits (until 2039), then 0.0005.
local step = now < 2199023255552 and 25 or 50
-- The next place: the first of this millisecond, or the one behind the last entry's.
local ms, place = now, 0
if last then
  local last_ms = tonumber(string.sub(last, 1, -7))
  if last_ms >= now then ms, place = last_ms, tonumber(string.sub(last, -5)) + step end
end
local stamp = format("%d", ms)
local score

-- A set holds equal texts once. Entries alike in every byte get spaces behind their time, which JSON passes over.
local function add_twins(args, from)
  for i = 1, #args, 2 do
    local own, text = args[i], args[i + 1]
    if tonumber(call("ZSCORE", stream, text)) ~= tonumber(own) then
      local at = 6 + 2 * from + i - 1
      text = ARGV[at] .. string.sub(own, 1, -7) .. " "
      while call("ZADD", stream, "NX", own, text .. ARGV[at + 1]) == 0 do text = text .. " " end
    end
  end
end

local from = 0
while from < count do
  local to = math.min(from + 500, count)
  local args, filled = {}, 0
  for i = from, to - 1 do
    if place >= 100000 then
      ms, place = ms + 1, 0
      stamp = format("%d", ms)
    end
    score = stamp .. format(".%05d", place)
    place = place + step
    args[filled + 1] = score
    args[filled + 2] = ARGV[6 + 2 * i] .. stamp .. ARGV[7 + 2 * i]
    filled = filled + 2
  end
  if call("ZADD", stream, "NX", unpack(args, 1, filled)) < to - from then add_twins(args, from) end
  from = to
end

local expired = call("ZREMRANGEBYSCORE", stream, "-inf", format("(%d", now - ttl + 1))
local length = call("ZCARD", stream)
local woken = length > 0 and length <= count
local trimmed = 0
if length > max_length then
  trimmed = call("ZREMRANGEBYRANK", stream, 0, format("%d", length - max_length - 1))
  length = length - trimmed
end

call(
  "HSET", meta,
  "last", score or last or "0.00000",
  "pushed", format("%d", (tonumber(pushed) or 0) + count),
  operation, seq .. "|" .. stamp
)
if woken then call("PUBLISH", hint, fleet) end
if trimmed == 0 and expired == 0 then return length end
if trimmed > 0 then call("HINCRBY", meta, "trimmed", trimmed) end
if expired > 0 then call("HINCRBY", meta, "expired", expired) end
return { length, trimmed, expired }
