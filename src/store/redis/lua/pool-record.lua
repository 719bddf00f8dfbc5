-- How an item is told.

-- {id, state, payload, tags as JSON, uses, score, put at, expires at or 0, last used at or "", by, since, until, end of the rest, reason,
-- retired at, note}; what does not apply is "".
function p.record(number, mark)
  local item = p.read(number)
  local state = p.state_of(mark)
  local uses, score, last = p.used(number)
  local claim = state == "held" and p.read_claim(number)
  if claim then uses, score = claim.uses, claim.score end
  local told = {
    item.id, state, p.payload(number, item), item.json, uses, score, item.put, item.expires, last,
    "", "", "", "", "", "", "",
  }
  if claim then
    told[10], told[11], told[12] = claim.by, claim.since, claim.till
  elseif state == "cooling" then
    told[13] = mark - p.COOL
  elseif state == "retired" then
    told[14], told[15], told[16] = string.match(call("HGET", p.base .. "gone", number), "^(%S+) (%d+) (.*)$")
  end
  return told
end
