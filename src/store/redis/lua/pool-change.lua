-- One change of a claimed item by its holder.
-- USES clock, pool, pool-hold, pool-ends
-- KEYS base
-- ARGV clock, fleet, id, token, what, value, tags, tagsJson
-- ->   {"lease-lost"} | {"done", until or "", score}
--
-- `value` of "cool" and "extend" is a time in ms, of "retire" a note, of "report" what is added to the score. "update" has a
-- payload as `value`, tags and these as JSON, each "" or `=` and a text.
local what, value, tags, json = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
p.open(KEYS[1], now_us(), ARGV[2])
p.know()
p.know_claims()
local number = call("HGET", p.ids, ARGV[3])
local claim = number and p.read_claim(number)
if not claim or claim.token ~= ARGV[4] or claim.till <= p.now then return { "lease-lost" } end
local item = p.read(number)

if what == "release" or what == "cool" or what == "retire" then
  p.know_ends()
  p.count("released", 1)
  if what == "retire" then
    p.drop_claim(number, claim, p.now, p.place())
    p.retire(number, item, "asked", value, p.now)
  else
    p.release(number, item, claim, p.now, p.place(), tonumber(value))
  end
  p.close()
  return { "done", "", claim.score }
end

if what == "extend" then
  claim.till = math.max(claim.till, p.now + tonumber(value))
  p.write_claim(number, claim)
  p.mark(number, item.tags, p.held_mark(item, claim.uses, claim.till))
  p.wake(claim.till)
elseif what == "report" then
  claim.score = claim.score + tonumber(value)
  p.write_claim(number, claim)
elseif what == "update" then
  local payload = value ~= "" and string.sub(value, 2) or p.payload(number, item)
  if tags ~= "" and string.sub(tags, 2) ~= item.tags then
    p.unmark(number, item.tags)
    item.tags = string.sub(tags, 2)
    p.mark(number, item.tags, p.held_mark(item, claim.uses, claim.till))
  end
  if json ~= "" then item.json = string.sub(json, 2) end
  p.write(number, item, payload)
end
p.close()
return { "done", claim.till, claim.score }
