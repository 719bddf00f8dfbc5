-- A pool's names, settings and items. Every script that changes a pool begins with `p.open` and ends with `p.close`.
--
-- `p.base` is what all names of the pool begin with, `{<p>pool:<name>}:`; `keys.ts` says what lies behind it. An item is known by its
-- number, its place in the order in which all were put. Its **mark** is its score in `all` and in the set of each of its tag values: of a
-- free one its place in the order in which items are given out, below `p.HELD`; of a held one `p.HELD` and the end of its lease, or
-- `p.LAST` and that where it will be retired or gone then; of a cooling one `p.COOL` and when that ends; of a retired one `p.RETIRED` and
-- when it was. So the first mark of a set tells whether something is free. All are below 2^53 and, where they are not whole, below 2^51.

local call, format = redis.call, string.format
local p = { tally = {} }
p.HELD, p.LAST, p.COOL, p.RETIRED = 4503599627370496, 5629499534213120, 6755399441055744, 7881299347898368
-- So many numbers in a row are a block; `blocks` has those in which there are items.
p.BLOCK = 128
p.TOTALS = { "put", "claimed", "released", "expired", "retired", "removed", "leasesExpired" }

function p.text(number)
  return format("%.2f", number)
end

-- `head` of `meta` is what each call needs: what a look at the pool takes, other settings, the last of what is counted, totals.
-- `fleet`: as whom hints are given.
function p.open(base, us, fleet)
  p.fleet, p.base, p.us, p.now = fleet, base, us, math.floor(us / 1000)
  p.all = base .. "all"
  p.head = call("HGET", base .. "meta", "head")
  p.declared = p.head and true or false
  local due, cooldown, strategy, more = string.match(p.head or "- 0 lru 0 0 - 0 0 0 0 0 0 0 0 0 0 0", "^(%S+) (%d+) (%a+) (.*)$")
  p.due, p.cooldown, p.strategy, p.unread = tonumber(due) or math.huge, tonumber(cooldown), strategy, more
end

-- To be called before any of these is. They are made then and not before: that takes time, and a look at a pool needs none of them.
function p.know()
  if p.read then return end
  p.meta, p.items, p.ids = p.base .. "meta", p.base .. "items", p.base .. "ids"
  local max_uses, max_age, bad_score, seq, token, seen, behind, totals =
    string.match(p.unread, "^(%d+) (%d+) (%S+) (%d+) (%d+) (%d+) (%d+) (.*)$")
  p.max_uses, p.max_age, p.bad_score = tonumber(max_uses), tonumber(max_age), tonumber(bad_score)
  p.seq, p.token, p.seen, p.behind, p.totals = tonumber(seq), tonumber(token), tonumber(seen), tonumber(behind), totals

  -- Greater than all before: also over a loss of all data, as it is the store's microseconds at least.
  function p.next()
    if p.now > p.seen then p.seen, p.behind = p.now, 0 end
    p.token = math.max(p.us, p.token + 1)
    return p.token
  end

  -- A place in the order of `lru`: by the millisecond, then by steps. Where the clock has gone back, in quarters of a microsecond behind what
  -- there may be of that millisecond already.
  function p.place()
    if p.now >= p.seen then return p.next() end
    p.behind = p.behind + 1
    return p.now * 1000 + 500 + math.min(p.behind, 1999) / 4
  end

  -- Something is to be done at this time, by `p.settle`.
  function p.wake(at)
    if at < p.due then p.due = at end
  end

  -- Adds to one of the counters that only grow.
  function p.count(name, by)
    if by ~= 0 then p.tally[name] = (p.tally[name] or 0) + by end
  end

  -- Writes what has changed. A hint is given where something became free or a line moved (`p.stirred`).
  function p.close()
    if next(p.tally) then
      local i = 0
      p.totals = string.gsub(p.totals, "%d+", function(total)
        i = i + 1
        local by = p.tally[p.TOTALS[i]]
        return by and format("%d", tonumber(total) + by)
      end)
    end
    local head = format(
      "%s %d %s %d %d %s %d %d %d %d %s",
      p.due < p.HELD and format("%d", p.due) or "-", p.cooldown, p.strategy,
      p.max_uses, p.max_age, p.bad_score and format("%d", p.bad_score) or "-",
      p.seq, p.token, p.seen, p.behind, p.totals
    )
    if p.declared and head ~= p.head then call("HSET", p.meta, "head", head) end
    if p.stirred then call("PUBLISH", p.base .. "hint", p.fleet) end
  end

  -- `<put at> <expires at or 0> <1 where its payload lies elsewhere> <lengths of id, tags and their JSON> <these three><payload>`
  function p.write(number, item, payload)
    local large = #payload > 4096
    local head = format("%d %d %d %d %d %d ", item.put, item.expires, large and 1 or 0, #item.id, #item.tags, #item.json)
    if large then
      call("HSET", p.base .. "large", number, payload)
    elseif item.large then
      call("HDEL", p.base .. "large", number)
    end
    call("HSET", p.items, number, head .. item.id .. item.tags .. item.json .. (large and "" or payload))
  end

  function p.read(number)
    local text = call("HGET", p.items, number)
    if not text then return nil end
    local put, expires, large, id, tags, json, at = string.match(text, "^(%d+) (%d+) (%d) (%d+) (%d+) (%d+) ()")
    local to_tags = at + tonumber(id)
    local to_json = to_tags + tonumber(tags)
    local to_payload = to_json + tonumber(json)
    return {
      put = tonumber(put),
      expires = tonumber(expires),
      large = large == "1",
      id = string.sub(text, at, to_tags - 1),
      tags = string.sub(text, to_tags, to_json - 1),
      json = string.sub(text, to_json, to_payload - 1),
      payload = string.sub(text, to_payload),
    }
  end

  function p.payload(number, item)
    return item.large and call("HGET", p.base .. "large", number) or item.payload
  end

  -- Uses, score, time of the last release, and the place in order that it gave. Of a held item its claim has the first two.
  function p.used(number)
    local text = call("HGET", p.base .. "used", number)
    if not text then return 0, 0, "", 0 end
    local uses, score, last, place = string.match(text, "^(%d+) (-?%d+) (%d*) (.*)$")
    return tonumber(uses), tonumber(score), last, tonumber(place)
  end

  -- Sets an item's mark in all of its sets.
  function p.mark(number, tags, mark)
    mark = p.text(mark)
    call("ZADD", p.all, mark, number)
    for tag in string.gmatch(tags, "[^ ]+") do call("ZADD", p.base .. "tag:" .. tag, mark, number) end
  end

  function p.unmark(number, tags)
    call("ZREM", p.all, number)
    for tag in string.gmatch(tags, "[^ ]+") do call("ZREM", p.base .. "tag:" .. tag, number) end
  end

  -- What the mark says.
  function p.state_of(mark)
    if mark < p.HELD then return "free" end
    if mark < p.COOL then return "held" end
    return mark < p.RETIRED and "cooling" or "retired"
  end

  -- When an item's life is over at the latest, or 0.
  function p.end_of(item)
    local aged = p.max_age > 0 and item.put + p.max_age or 0
    if item.expires == 0 or aged == 0 then return item.expires + aged end
    return math.min(item.expires, aged)
  end

  -- Notes when its life is over, where it has an end.
  function p.limit(number, item)
    local ends = p.end_of(item)
    if ends > 0 then
      call("ZADD", p.base .. "ends", format("%d", ends), number)
      p.wake(ends)
    else
      call("ZREM", p.base .. "ends", number)
    end
  end
end
