-- One change of a claimed item by its holder.
-- USES clock, pool-head, pool, pool-item, pool-ends
-- KEYS base
-- ARGV clock, fleet, id, token, what, value, tags, tagsJson
-- FLAGS allow-oom
-- ->   {"lease-lost"} | {"done", until or "", score}
--
-- `value` of "cool" and "extend" is a time in ms, of "retire" a note, of "report" what is added to the score. "update" has a
-- payload as `value`, tags and these as JSON, each "" or `=` and a text.
local what, value, tags, json = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
p.open(KEYS[1], now_us(), ARGV[2])
p.know()
local number = p.number_of(ARGV[3])
local item = number and p.read(number)
if not item or not item.token or format("%d", item.token) ~= ARGV[4] or item.till <= p.now then return { "lease-lost" } end

if what == "release" or what == "cool" or what == "retire" then
  p.know_ends()
  p.count("released", 1)
  if what == "retire" then
    p.drop_claim(number, item, p.now, p.place())
    p.retire(number, item, "asked", value, p.now)
  else
    p.release(number, item, p.now, p.place(), tonumber(value))
  end
  p.close()
  return { "done", "", item.score }
end

if what == "extend" then
  item.till = math.max(item.till, p.now + tonumber(value))
  p.mark(number, item.tags, p.held_mark(item))
  p.wake(item.till)
elseif what == "report" then
  item.score = item.score + tonumber(value)
elseif what == "update" then
  if value ~= "" then p.set_payload(number, item, string.sub(value, 2)) end
  if tags ~= "" and string.sub(tags, 2) ~= item.tags then
    item.json = p.json_of(item)
    p.untag(number, item.tags)
    item.tags = string.sub(tags, 2)
    p.mark(number, item.tags, p.held_mark(item))
  end
  if json ~= "" then item.json = string.sub(json, 2) end
end
p.write(number, item)
p.close()
return { "done", item.till, item.score }
