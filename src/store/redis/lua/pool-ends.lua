-- How claims and items end.

-- See `p.know`.
function p.know_ends()
  -- The request that got this claim has one less.
  function p.forget_granted(number, item)
    local left = {}
    if not item.alone then
      for other in string.gmatch(call("HGET", p.base .. "requests", item.request) or "", "%d+") do
        if other ~= number then left[#left + 1] = other end
      end
    end
    if #left > 0 then
      call("HSET", p.base .. "requests", item.request, table.concat(left, " "))
    else
      call("HDEL", p.base .. "requests", item.request)
    end
  end

  -- The item stays, for people to look at.
  function p.retire(number, item, reason, note, at)
    call("ZREM", p.base .. "ends", number)
    p.mark(number, item.tags, p.RETIRED + at)
    call("HSET", p.base .. "gone", number, reason .. " " .. format("%d", at) .. " " .. note)
    p.count("retired", 1)
  end

  -- Nothing of the item stays.
  function p.erase(number, item)
    p.untag(number, item.tags)
    local block = format("%d", math.floor(number / p.BLOCK))
    call("ZREM", p.base .. "marks:" .. block, number)
    if call("EXISTS", p.base .. "marks:" .. block) == 0 then
      call("ZREM", p.firsts, block)
      call("ZREM", p.base .. "blocks", block)
    end
    call("ZREM", p.busy, number)
    call("ZREM", p.base .. "ends", number)
    call("HDEL", p.items, number)
    call("HDEL", p.bucket_of(item.id), item.id)
    call("HDEL", p.base .. "gone", number)
    if item.large then call("HDEL", p.base .. "large", number) end
    p.size = p.size - 1
  end

  function p.expire(number, item)
    p.erase(number, item)
    p.count("expired", 1)
  end

  -- The claim is over; where the item goes is the caller's. `at`: when, `place`: the item's new place in order.
  function p.drop_claim(number, item, at, place)
    call("SREM", p.base .. "holder:" .. item.holder, number)
    p.forget_granted(number, item)
    item.token, item.last, item.place = nil, at, place
    p.write(number, item)
  end

  -- Ends a claim as a release at `at`, after which the item rests for the pool's time, or `rest` where that is longer. 
  function p.release(number, item, at, place, rest)
    p.drop_claim(number, item, at, place)
    if item.expires > 0 and item.expires <= at then
      p.expire(number, item)
      return
    end
    local reason
    if p.max_uses > 0 and item.uses >= p.max_uses then
      reason = "max-uses"
    elseif p.max_age > 0 and item.put + p.max_age <= at then
      reason = "max-age"
    elseif p.bad_score and item.score <= p.bad_score then
      reason = "score"
    end
    if reason then
      p.retire(number, item, reason, "", at)
      return
    end
    -- While it was held the end of its life may have been passed over, also by a clock that has stepped back since.
    local ends = p.end_of(item)
    if ends > 0 then p.limit(number, item) end
    local cool = at + math.max(rest or 0, p.cooldown)
    if cool > p.now then
      p.mark(number, item.tags, p.COOL + cool)
      p.wake(cool)
      p.rests = math.max(p.rests, cool)
      return
    end
    p.stirred = true
    p.mark(number, item.tags, p.strategy == "fifo" and tonumber(number) or place)
  end

  -- Releases a lease that is over as if it had been released at its end. No place in order is equal to another: this one lies half a
  -- microsecond before all else that happened in its time; `after` is the place of the one before, where several are released.
  function p.lapse(number, item, after)
    local till = item.till
    local place = math.max(till * 1000 - 0.5, (after or 0) + 1)
    p.release(number, item, till, place)
    p.count("leasesExpired", 1)
    return place
  end

  -- Ends a claim by an act of somebody. Where its time was over, it had ended by that; answers how many were released.
  function p.let_go(number, item)
    if item.till <= p.now then
      p.lapse(number, item)
      return 0
    end
    p.release(number, item, p.now, p.place())
    p.count("released", 1)
    return 1
  end
end
