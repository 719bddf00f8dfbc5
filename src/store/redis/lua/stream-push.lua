-- Appends entries in order, then prunes by age and by length, in one atomic step.
-- USES clock
-- KEYS stream, meta
-- ARGV clock, hint, fleet, operation, seq, guess, entries...
-- ->   length, or {length, µs of the store's clock, trimmed, expired} where one of the latter is news | "duplicate" | "undeclared"
--
-- `guess` is what the caller takes for the store's time, and stands in each entry as its ts. It is taken as the time of this step where it
-- is no more than 5 ms old, nor than a thousandth of what entries live; else all entries are put right. Each text that a script makes
-- costs as much as the rest of what is done for its entry, so those that need not be made are what makes this script fast.
--
-- A score is the time and a place within its millisecond, `<ms>.<five digits>`. Scores grow strictly, so equal times cannot put
-- entries in alphabetical order; ts is the whole part of the score, so an entry's age is exact even where more entries than fit
-- into one millisecond have run into the next.
--
-- This is the hottest script, and what else costs much in it is to turn a number with 17 digits into text, which Redis also does for
-- numbers given to commands. So scores are put together as text, and counts are written as the whole numbers that they are.
local call, format = redis.call, string.format
local stream, meta = KEYS[1], KEYS[2]
local operation, seq, guess = ARGV[4], ARGV[5], ARGV[6]

local kept = call("HMGET", meta, "maxLength", "ttlMs", "last", "pushed", operation)
local max_length, ttl = tonumber(kept[1]), tonumber(kept[2])
local last, pushed, applied = kept[3], kept[4], kept[5]
if not max_length then return "undeclared" end
if applied and tonumber(seq) <= tonumber(string.match(applied, "^%d+")) then return "duplicate" end

local us = now_us()
local now = math.floor(us / 1000)
local count = #ARGV - 6

-- A double tells places apart that lie 0.00025 apart while the time needs 41 bits (until 2039), then 0.0005.
local step = now < 2199023255552 and 25 or 50
-- The next place: the first of this millisecond, or the one behind the last entry's.
local ms, place, stamp = now, 0, format("%d", now)
-- A clock that tests have set is exact.
if guess ~= stamp and ARGV[1] == "" then
  local sent = tonumber(guess)
  if sent < now and now - sent <= math.min(5, ttl / 1000) then ms, stamp = sent, guess end
end
if last and tonumber(last) >= ms then
  ms, place = tonumber(string.sub(last, 1, -7)), tonumber(string.sub(last, -5)) + step
  stamp = format("%d", ms)
end
local well_guessed = stamp == guess
local score, hundreds

-- The entry with another text for the guess. Before its ts stand an id, whose quotes are escaped, and a number: the first place is it.
local function stamped(entry, text)
  local at = string.find(entry, ',"ts":' .. guess, 1, true) + 6
  return string.sub(entry, 1, at - 1) .. text .. string.sub(entry, at + #guess)
end

local from = 0
while from < count do
  local to = math.min(from + 500, count)
  local args, filled = {}, 0
  for i = from, to - 1 do
    if place >= 100000 then
      ms, place, hundreds = ms + 1, 0, nil
      stamp = format("%d", ms)
    end
    local rest = place % 100
    if rest == 0 or not hundreds then hundreds = stamp .. format(".%03d", (place - rest) / 100) end
    place = place + step
    score = hundreds .. (rest == 0 and "00" or rest == 25 and "25" or rest == 50 and "50" or "75")
    args[filled + 1] = score
    args[filled + 2] = stamp == guess and ARGV[7 + i] or stamped(ARGV[7 + i], stamp)
    filled = filled + 2
  end
  if call("ZADD", stream, "NX", unpack(args, 1, filled)) < to - from then
    -- A set holds equal texts once. Entries alike in every byte get spaces behind their time, which JSON passes over.
    for i = 1, filled, 2 do
      local own = args[i]
      if tonumber(call("ZSCORE", stream, args[i + 1])) ~= tonumber(own) then
        local time = string.sub(own, 1, -7) .. " "
        while call("ZADD", stream, "NX", own, stamped(ARGV[7 + from + (i - 1) / 2], time)) == 0 do time = time .. " " end
      end
    end
  end
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
if woken then call("PUBLISH", ARGV[2], ARGV[3]) end
-- One entry alone teaches a caller nothing that has guessed well.
if trimmed == 0 and expired == 0 and count == 1 and well_guessed then return length end
if trimmed > 0 then call("HINCRBY", meta, "trimmed", trimmed) end
if expired > 0 then call("HINCRBY", meta, "expired", expired) end
return { length, us, trimmed, expired }
