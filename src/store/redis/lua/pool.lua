-- A pool's names, settings and items. Every script that changes a pool begins with `p.open` and ends with `p.close`.
--
-- `p.base` is what all names of the pool begin with, `{<p>pool:<name>}:`; `keys.ts` says what lies behind it. An item is known by its
-- number, its place in the order in which all were put. Its **mark** is its score in `marks` and in the set of each of its tag values: of a
-- free one its place in the order in which items are given out, below `p.HELD`; of a held one `p.HELD` and the end of its lease, or
-- `p.LAST` and that where it will be retired or gone then; of a cooling one `p.COOL` and when that ends; of a retired one `p.RETIRED` and
-- when it was. So the first mark of a set tells whether something is free. All are below 2^53 and, where they are not whole, below 2^51.
--
-- There is no set of all items: sets of many take a hundred bytes for each, small ones fifteen. So many numbers in a row are a block, of
-- which `marks:<block>` has the marks; `firsts` has a bound of the first mark of each, which may be too low, but never too high.

local call, format, pack = redis.call, string.format, struct.pack
-- With a place for all that `p.open` finds and what is defined here: a table that grows is made anew each time.
local p = {
  HELD = HELD, LAST = LAST, COOL = COOL, RETIRED = RETIRED, BLOCK = 64, NO_SCORE = 2147483647, stirred = false, tally = false,
  fleet = 0, base = 0, us = 0, now = 0, items = 0, busy = 0, firsts = 0, head = 0, declared = 0, due = 0, cooldown = 0, max_uses = 0,
  max_age = 0, seq = 0, token = 0, seen = 0, behind = 0, size = 0, buckets = 0, lines = 0, rests = 0, strategy = 0, bad_score = 0,
  totals = 0, text = 0, open = 0, close = 0, next = 0, wake = 0, count = 0, write = 0, read = 0, payload = 0, json_of = 0, mark = 0, end_of = 0,
  held_mark = 0,
}
-- Of an item: what all have, the end of its life, its use, its claim. Most have short texts.
local ITEM, LONG, LIFE, USE, CLAIM = ">BI6BBB", ">BI6I3I3I3", ">I6", ">I4i4I6d", ">dI6I6I6HHH"

function p.text(number)
  return format("%.2f", number)
end

-- `fleet`: as whom hints are given; `head` where it was read already.
function p.open(base, us, fleet, head)
  p.fleet, p.base, p.us, p.now = fleet, base, us, math.floor(us / 1000)
  p.items, p.busy, p.firsts = base .. "items", base .. "busy", base .. "firsts"
  head = head or read_head(base)
  p.head, p.declared = head, head and true or false
  head = head or pack(HEAD, math.huge, 0, 1, 0, 0, p.NO_SCORE, 0, 0, 0, 0, 0, 1, 0, 0) .. pack(SUMS, 0, 0, 0, 0, 0, 0)
  local strategy, bad, at
  p.due, p.cooldown, strategy, p.max_uses, p.max_age, bad, p.seq, p.token, p.seen, p.behind, p.size, p.buckets, p.lines, p.rests, at =
    struct.unpack(HEAD, head)
  p.strategy, p.bad_score, p.totals = strategy == 1 and "lru" or strategy == 2 and "fifo" or "random", bad < p.NO_SCORE and bad or nil, string.sub(head, at)
end

-- Writes what has changed. A hint is given where something became free or a line moved (`p.stirred`).
function p.close()
  local tally = p.tally
  if tally then
    local put, released, expired, retired, removed, leases = struct.unpack(SUMS, p.totals)
    p.totals = pack(
      SUMS, put + (tally.put or 0), released + (tally.released or 0), expired + (tally.expired or 0), retired + (tally.retired or 0),
      removed + (tally.removed or 0), leases + (tally.leasesExpired or 0)
    )
  end
  local head = pack(
    HEAD, p.due, p.cooldown, p.strategy == "lru" and 1 or p.strategy == "fifo" and 2 or 3, p.max_uses, p.max_age, p.bad_score or p.NO_SCORE, p.seq, p.token, p.seen,
    p.behind, p.size, p.buckets, p.lines, p.rests
  ) .. p.totals
  if p.declared and head ~= p.head then call("HSET", p.base .. "meta", "head", head) end
  if p.stirred then call("PUBLISH", p.base .. "hint", p.fleet) end
end

-- Greater than all before: also over a loss of all data, as it is the store's microseconds at least.
function p.next()
  if p.now > p.seen then p.seen, p.behind = p.now, 0 end
  p.token = math.max(p.us, p.token + 1)
  return p.token
end

-- Something is to be done at this time, by `p.settle`.
function p.wake(at)
  if at < p.due then p.due = at end
end

-- Adds to one of the counters that only grow.
function p.count(name, by)
  if by == 0 then return end
  p.tally = p.tally or {}
  p.tally[name] = (p.tally[name] or 0) + by
end

-- `<flags, put at, lengths of id, tags and their JSON> <expires at> <uses, score, last release, the place in order that it gave>
-- <token, until, since, holdMs, lengths of holder, request and `by`> <these six><payload>`. Flags: 1 where its payload lies elsewhere, 2 where
-- it expires, 4 where it was used, 8 where it is held, 16 where its claim extends itself, 32 where that is its request's only
-- one, 64 where some text is long.
function p.write(number, item)
  local flags, head, claim = item.large and 1 or 0, "", ""
  if item.expires > 0 then flags, head = flags + 2, pack(LIFE, item.expires) end
  if item.uses > 0 then flags, head = flags + 4, head .. pack(USE, item.uses, item.score, item.last, item.place) end
  if item.token then
    flags = flags + 8 + (item.auto and 16 or 0) + (item.alone and 32 or 0)
    head = head .. pack(CLAIM, item.token, item.till, item.since, item.hold, #item.holder, #item.request, #item.by)
    claim = item.holder .. item.request .. item.by
  end
  local long = #item.id > 255 or #item.tags > 255 or #item.json > 255
  head = pack(long and LONG or ITEM, long and flags + 64 or flags, item.put, #item.id, #item.tags, #item.json) .. head
  call("HSET", p.items, number, head .. item.id .. item.tags .. item.json .. claim .. item.payload)
end

function p.read(number)
  local text = call("HGET", p.items, number)
  if not text then return nil end
  local item = {
    put = 0, large = false, expires = 0, uses = 0, score = 0, last = 0, place = 0, id = 0, tags = 0, json = 0, payload = 0,
    token = nil, till = nil, since = nil, hold = nil, auto = nil, alone = nil, holder = nil, request = nil, by = nil,
  }
  local flags, put, id, tags, json, at = struct.unpack(string.byte(text) >= 64 and LONG or ITEM, text)
  flags = flags % 64
  item.put, item.large = put, flags % 2 == 1
  if flags % 4 >= 2 then item.expires, at = struct.unpack(LIFE, text, at) end
  if flags % 8 >= 4 then item.uses, item.score, item.last, item.place, at = struct.unpack(USE, text, at) end
  local holder, request, by
  if flags >= 8 then
    item.token, item.till, item.since, item.hold, holder, request, by, at = struct.unpack(CLAIM, text, at)
    item.auto, item.alone = flags % 32 >= 16, flags >= 32
  end
  local to_tags = at + id
  local to_json = to_tags + tags
  local to_claim = to_json + json
  item.id, item.tags, item.json =
    string.sub(text, at, to_tags - 1), string.sub(text, to_tags, to_json - 1), string.sub(text, to_json, to_claim - 1)
  if holder then
    local to_request = to_claim + holder
    local to_by = to_request + request
    item.holder, item.request = string.sub(text, to_claim, to_request - 1), string.sub(text, to_request, to_by - 1)
    to_claim = to_by + by
    item.by = string.sub(text, to_by, to_claim - 1)
  end
  item.payload = string.sub(text, to_claim)
  return item
end

function p.payload(number, item)
  return item.large and call("HGET", p.base .. "large", number) or item.payload
end

-- Its tags as JSON; where `json` only tells the order and the kinds of the tags, these too. `pool-compact.ts` makes JSON of that.
function p.json_of(item)
  return string.find(item.json, "^:%w+$") and item.json .. " " .. item.tags or item.json
end

-- Sets an item's mark in all of its sets. A free one may be the first of its block by that.
function p.mark(number, tags, mark)
  local text, block = mark % 1 == 0 and format("%d", mark) or p.text(mark), format("%d", math.floor(number / p.BLOCK))
  call("ZADD", p.base .. "marks:" .. block, text, number)
  if mark < p.HELD then
    call("ZADD", p.firsts, "LT", text, block)
    call("ZREM", p.busy, number)
  else
    call("ZADD", p.busy, text, number)
  end
  for tag in string.gmatch(tags, "[^ ]+") do call("ZADD", p.base .. "tag:" .. tag, text, number) end
end

-- When an item's life is over at the latest, or 0.
function p.end_of(item)
  local aged = p.max_age > 0 and item.put + p.max_age or 0
  if item.expires == 0 or aged == 0 then return item.expires + aged end
  return math.min(item.expires, aged)
end

-- The mark of an item that is held.
function p.held_mark(item)
  local ends = p.end_of(item)
  if p.max_uses > 0 and item.uses >= p.max_uses or ends > 0 and ends <= item.till then return p.LAST + item.till end
  return p.HELD + item.till
end
