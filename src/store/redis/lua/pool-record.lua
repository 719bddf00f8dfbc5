-- How an item is told.

-- {id, state, payload, tags as JSON, uses, score, put at, expires at or 0, last used at or "", by, since, until, end of the rest, reason,
-- retired at, note}; what does not apply is "".
function p.record(number, mark)
  local item = p.read(number)
  local state = p.state_of(mark)
  local last = item.last > 0 and format("%d", item.last) or ""
  local told = {
    item.id, state, p.payload(number, item), p.json_of(item), item.uses, item.score, item.put, item.expires, last,
    "", "", "", "", "", "", "",
  }
  if state == "held" then
    told[10], told[11], told[12] = item.by, item.since, item.till
  elseif state == "cooling" then
    told[13] = mark - p.COOL
  elseif state == "retired" then
    told[14], told[15], told[16] = string.match(call("HGET", p.base .. "gone", number), "^(%S+) (%d+) (.*)$")
  end
  return told
end
