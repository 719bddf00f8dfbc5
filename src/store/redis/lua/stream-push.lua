-- Appends entries in order, then prunes by age and by length, in one atomic step.
-- USES clock
-- KEYS stream, meta, ops
-- ARGV clock, hint, fleet, producer, seq, entries...
-- ->   {"pushed", length, trimmed, expired} | {"duplicate"} | {"undeclared"}
--
-- `entries` are pairs head, tail; the stored text is head .. ts .. tail. Payloads are never parsed.
-- Scores grow strictly, so equal times cannot put entries in alphabetical order; ts is the whole part of the score, so an
-- entry's age is exact even where more entries than fit into one millisecond have run into the next.
local stream, meta, ops = KEYS[1], KEYS[2], KEYS[3]
local hint, fleet, producer, seq = ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local kept = redis.call("HMGET", meta, "maxLength", "ttlMs", "last", "pushed", "trimmed", "expired")
if not kept[1] then return { "undeclared" } end
local applied = redis.call("HGET", ops, producer)
if applied and tonumber(seq) <= tonumber(string.match(applied, "^%d+")) then return { "duplicate" } end

local now = now_ms()
local max_length, ttl, last = tonumber(kept[1]), tonumber(kept[2]), tonumber(kept[3]) or 0

-- A double holds so many scores per millisecond: 4096 while the time needs 41 bits (until 2039), then half as many.
local step = math.max(now, last) < 2199023255552 and 1 / 4096 or 1 / 2048
local count = (#ARGV - 5) / 2
local score = math.max(now - step, last)
local ts, stamp = -1, nil

-- A set holds equal texts once. Entries alike in every byte get spaces behind their time, which JSON passes over.
local function add_twins(args, from)
  for i = 1, #args, 2 do
    local own = tonumber(args[i])
    if tonumber(redis.call("ZSCORE", stream, args[i + 1])) ~= own then
      local at = 6 + 2 * from + i - 1
      local text = ARGV[at] .. int(math.floor(own)) .. " "
      while redis.call("ZADD", stream, "NX", args[i], text .. ARGV[at + 1]) == 0 do text = text .. " " end
    end
  end
end

local from = 0
while from < count do
  local to = math.min(from + 500, count)
  local args = {}
  for i = from, to - 1 do
    score = score + step
    if score >= ts + 1 then
      ts = math.floor(score)
      stamp = int(ts)
    end
    args[#args + 1] = string.format("%.17g", score)
    args[#args + 1] = ARGV[6 + 2 * i] .. stamp .. ARGV[7 + 2 * i]
  end
  if redis.call("ZADD", stream, "NX", unpack(args)) < to - from then add_twins(args, from) end
  from = to
end

local expired = redis.call("ZREMRANGEBYSCORE", stream, "-inf", "(" .. int(now - ttl + 1))
local length = redis.call("ZCARD", stream)
local woken = length > 0 and length <= count
local trimmed = 0
if length > max_length then
  trimmed = redis.call("ZREMRANGEBYRANK", stream, 0, length - max_length - 1)
  length = length - trimmed
end

redis.call("HSET", ops, producer, seq .. "|" .. int(now))
redis.call(
  "HSET", meta,
  "last", string.format("%.17g", score),
  "pushed", int((tonumber(kept[4]) or 0) + count),
  "trimmed", int((tonumber(kept[5]) or 0) + trimmed),
  "expired", int((tonumber(kept[6]) or 0) + expired)
)
if woken then redis.call("PUBLISH", hint, fleet) end
return { "pushed", length, trimmed, expired }
