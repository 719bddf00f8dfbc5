-- A queue's names, settings and counters. Every script that changes a queue begins with `q.open` and ends with `q.close`.
--
-- `q.base` is what all names of the queue begin with, `{<p>queue:<name>}:`; `keys.ts` says what lies behind it. All functions and what
-- they share stand in one table: a local variable costs time for each function that refers to it, whether that is called or not.

-- While a library is loaded there is nothing of the kind yet: `q.open` fills it in.
local call, format
local q = {}

-- Takes any number of values: `unpack` has a limit.
function q.many(command, key, values)
  for i = 1, #values, 4000 do call(command, key, unpack(values, i, math.min(i + 3999, #values))) end
end

-- Adds scores and members. A small sorted set is a list that is read from its begin for each member; what comes in bulk is better
-- added to a tree, which Redis makes of it when a member is long, for as long as the set is there.
function q.add(key, values)
  if #values < 40 then
    if #values > 0 then call("ZADD", key, unpack(values)) end
    return
  end
  local long = string.rep("-", 65)
  call("ZADD", key, "0", long)
  q.many("ZADD", key, values)
  call("ZREM", key, long)
end

-- `fleet`: as whom hints are given.
function q.open(base, us, fleet)
  call, format = redis.call, string.format
  q.fleet = fleet
  -- What is gathered in one step. Set here, as functions of a library outlive it.
  q.tally, q.present, q.refreshed, q.more, q.cancelling = {}, false, false, false, "?"
  q.touched, q.order, q.served, q.firsts = {}, {}, {}, {}
  q.dropped, q.ended = {}, { c = {}, x = {}, f = {} }
  q.lots, q.lanes, q.kinds = {}, {}, {}
  q.base, q.meta, q.tasks, q.ring, q.active = base, base .. "meta", base .. "task:", base .. "ring", base .. "active"
  q.us, q.now = us, math.floor(us / 1000)
  q.stamp = format("%d", q.now)
  local kept = call(
    "HMGET", q.meta,
    "concurrency", "keyConcurrency", "crashLimit", "maxLength", "seq", "turn", "token", "due", "idle"
  )
  q.declared = kept[1] and true or false
  q.concurrency, q.key_limit = tonumber(kept[1]) or 0, tonumber(kept[2]) or 0
  q.crash_limit, q.max_length = tonumber(kept[3]) or 1, tonumber(kept[4]) or 0
  q.seq, q.turn, q.token = tonumber(kept[5]) or 0, tonumber(kept[6]) or 0, tonumber(kept[7]) or 0
  -- No later than what time alone changes next, see `q.refresh`; how many holders wait to be handed tasks.
  q.due, q.idle = tonumber(kept[8]) or 0, tonumber(kept[9]) or 0
  q.last_seq, q.last_turn, q.last_token, q.last_due, q.last_idle = q.seq, q.turn, q.token, q.due, q.idle
  q.was_ready = "?"
  if q.concurrency > 0 then q.was_ready = q.has_room() and call("EXISTS", q.ring) == 1 end
end

-- Says that something is due then.
function q.soon(at)
  if at < q.due then q.due = at end
end

-- Greater than all before: also over a loss of all data, as it is the store's microseconds at least.
function q.new_token()
  q.token = math.max(q.us, q.token + 1)
  return format("%d", q.token)
end

-- Adds to one of the counters that only grow.
function q.count(name, by)
  q.tally[name] = (q.tally[name] or 0) + by
end

function q.has_room()
  return q.concurrency == 0 or call("ZCARD", q.active) < q.concurrency
end

-- How many tasks could be claimed at once, at least: where keys have a limit, one of each lane with a key counts.
function q.ready()
  local lanes = call("ZCARD", q.ring)
  if lanes == 0 then return 0 end
  local plain = call("ZCARD", q.base .. "lane:-")
  local ready
  -- That lane is always among them.
  if lanes == 1 and plain > 0 and q.concurrency == 0 then return plain end
  if q.key_limit == 0 then
    ready = plain + call("ZCARD", q.base .. "keyed")
  else
    ready = plain + lanes - (plain > 0 and 1 or 0)
  end
  if q.concurrency > 0 then ready = math.min(ready, q.concurrency - call("ZCARD", q.active)) end
  return math.max(ready, 0)
end

-- Writes the counters, and gives a hint where nothing could be claimed before and something can now. Answers `q.ready`.
function q.close()
  local changed = {}
  local function note(name, value, before)
    if value == before then return end
    changed[#changed + 1] = name
    changed[#changed + 1] = format("%d", value)
  end
  note("seq", q.seq, q.last_seq)
  note("turn", q.turn, q.last_turn)
  note("token", q.token, q.last_token)
  note("due", q.due, q.last_due)
  note("idle", q.idle, q.last_idle)
  if #changed > 0 then call("HSET", q.meta, unpack(changed)) end
  for name, by in pairs(q.tally) do call("HINCRBY", q.meta, name, by) end
  local ready = q.ready()
  if ready > 0 and q.was_ready == false then call("PUBLISH", q.base .. "hint", q.fleet) end
  return ready
end
