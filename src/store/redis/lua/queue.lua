-- A queue's names, settings and counters. Every script of queues begins with `open` and ends with `close`.
--
-- `base` is what all names of the queue begin with, `{<p>queue:<name>}:`; `keys.ts` says what lies behind it.

local call, format = redis.call, string.format
local base, meta, tasks, ring, active
local us, now, stamp
local declared, concurrency, key_limit, crash_limit, max_length
local seq, turn, token, last_seq, last_turn, last_token
local was_ready
local tally = {}

-- Takes any number of values: `unpack` has a limit.
local function many(command, key, values)
  local sum = 0
  for i = 1, #values, 4000 do sum = sum + call(command, key, unpack(values, i, math.min(i + 3999, #values))) end
  return sum
end

-- How many tasks could be claimed at once, at least: where keys have a limit, one of each lane with a key counts.
local function ready()
  local lanes = call("ZCARD", ring)
  if lanes == 0 then return 0 end
  local plain = call("ZCARD", base .. "lane:-")
  local count
  if key_limit == 0 then
    count = plain + call("ZCARD", base .. "keyed")
  else
    count = plain + lanes - (plain > 0 and 1 or 0)
  end
  if concurrency > 0 then count = math.min(count, concurrency - call("ZCARD", active)) end
  return math.max(count, 0)
end

local function open(name, at)
  base, meta, tasks, ring, active = name, name .. "meta", name .. "task:", name .. "ring", name .. "active"
  us, now = at, math.floor(at / 1000)
  stamp = format("%d", now)
  local kept = call(
    "HMGET", meta,
    "concurrency", "keyConcurrency", "crashLimit", "maxLength", "seq", "turn", "token"
  )
  declared = kept[1] and true or false
  concurrency, key_limit, crash_limit = tonumber(kept[1]) or 0, tonumber(kept[2]) or 0, tonumber(kept[3]) or 1
  max_length = tonumber(kept[4]) or 0
  seq, turn, token = tonumber(kept[5]) or 0, tonumber(kept[6]) or 0, tonumber(kept[7]) or 0
  last_seq, last_turn, last_token = seq, turn, token
  was_ready = ready()
end

-- Greater than all before: also over a loss of all data, as it is the store's microseconds at least.
local function new_token()
  token = math.max(us, token + 1)
  return format("%d", token)
end

-- Adds to one of the counters that only grow.
local function count(name, by)
  tally[name] = (tally[name] or 0) + by
end

-- Writes the counters, and gives a hint where nothing could be claimed before and something can now. Answers `ready`.
local function close(fleet)
  if seq ~= last_seq or turn ~= last_turn or token ~= last_token then
    call("HSET", meta, "seq", format("%d", seq), "turn", format("%d", turn), "token", format("%d", token))
  end
  for name, by in pairs(tally) do call("HINCRBY", meta, name, by) end
  local is_ready = ready()
  if was_ready == 0 and is_ready > 0 then call("PUBLISH", base .. "hint", fleet) end
  return is_ready
end

-- When the next scheduled task is due; "" where there is none.
local function next_due()
  return call("ZRANGE", base .. "delayed", 0, 0, "WITHSCORES")[2] or ""
end
