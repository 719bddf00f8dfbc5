-- Claims as they are kept.

-- See `p.know`.
function p.know_claims()
  -- `<token> <until> <since> <holdMs> <1 where it extends itself> <uses> <score> <lengths of holder and request> <these two><by>`
  function p.write_claim(number, claim)
    local head = format(
      "%s %d %d %d %s %d %d %d %d ",
      claim.token, claim.till, claim.since, claim.hold, claim.auto, claim.uses, claim.score, #claim.holder, #claim.request
    )
    call("HSET", p.base .. "claims", number, head .. claim.holder .. claim.request .. claim.by)
  end

  function p.read_claim(number)
    local text = call("HGET", p.base .. "claims", number)
    if not text then return nil end
    local token, till, since, hold, auto, uses, score, holder, request, at =
      string.match(text, "^(%d+) (%d+) (%d+) (%d+) (%d) (%d+) (-?%d+) (%d+) (%d+) ()")
    local to_request = at + tonumber(holder)
    local to_by = to_request + tonumber(request)
    return {
      token = token,
      till = tonumber(till),
      since = tonumber(since),
      hold = tonumber(hold),
      auto = auto,
      uses = tonumber(uses),
      score = tonumber(score),
      holder = string.sub(text, at, to_request - 1),
      request = string.sub(text, to_request, to_by - 1),
      by = string.sub(text, to_by),
    }
  end

  -- The mark of an item that is held until then.
  function p.held_mark(item, uses, till)
    local ends = p.end_of(item)
    if p.max_uses > 0 and uses >= p.max_uses or ends > 0 and ends <= till then return p.LAST + till end
    return p.HELD + till
  end
end
