-- What changes of items need beyond the usual claim.

-- To be called before any of these is. They are made then and not before: that takes time, and the usual claim needs none of them.
function p.know()
  if p.place then return end

  -- A place in the order of `lru`: by the millisecond, then by steps. Where the clock has gone back, in quarters of a microsecond behind what
  -- there may be of that millisecond already.
  function p.place()
    if p.now >= p.seen then return p.next() end
    p.behind = p.behind + 1
    return p.now * 1000 + 500 + math.min(p.behind, 1999) / 4
  end

  -- Ids lie in small hashes, which take a quarter of the memory of a large one. Their number grows by one at a time (linear hashing): the
  -- first `p.buckets - round` of `round` are parted in two already.
  function p.bucket_of(id)
    local hash = tonumber(string.sub(redis.sha1hex(id), 1, 8), 16)
    local _, power = math.frexp(p.buckets)
    local round = 2 ^ (power - 1)
    local bucket = hash % (2 * round)
    return p.base .. "ids:" .. format("%d", bucket < p.buckets and bucket or hash % round)
  end

  function p.number_of(id)
    return call("HGET", p.bucket_of(id), id)
  end

  -- Parts one bucket more, where there are more than forty items for each: so none has more than 128, from where on Redis keeps them large.
  function p.part()
    while p.size > 40 * p.buckets do
      local _, power = math.frexp(p.buckets)
      local from = p.base .. "ids:" .. format("%d", p.buckets - 2 ^ (power - 1))
      p.buckets = p.buckets + 1
      local known, moved, gone = call("HGETALL", from), {}, {}
      for i = 1, #known, 2 do
        if p.bucket_of(known[i]) ~= from then
          gone[#gone + 1] = known[i]
          moved[#moved + 1] = known[i]
          moved[#moved + 1] = known[i + 1]
        end
      end
      if #gone > 0 then
        call("HDEL", from, unpack(gone))
        call("HSET", p.base .. "ids:" .. format("%d", p.buckets - 1), unpack(moved))
      end
    end
  end

  -- Long payloads lie elsewhere: what an item is besides is read and written often.
  function p.set_payload(number, item, payload)
    local large = #payload > 4096
    if large then
      call("HSET", p.base .. "large", number, payload)
    elseif item.large then
      call("HDEL", p.base .. "large", number)
    end
    item.large, item.payload = large, large and "" or payload
  end

  function p.untag(number, tags)
    for tag in string.gmatch(tags, "[^ ]+") do call("ZREM", p.base .. "tag:" .. tag, number) end
  end

  function p.mark_of(number)
    return tonumber(call("ZSCORE", p.base .. "marks:" .. format("%d", math.floor(number / p.BLOCK)), number) or nil)
  end

  -- What the mark says.
  function p.state_of(mark)
    if mark < p.HELD then return "free" end
    if mark < p.COOL then return "held" end
    return mark < p.RETIRED and "cooling" or "retired"
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
