-- Settings, counts and counters of a queue.
-- KEYS base
-- ARGV band
-- ->   {} | {meta as field, value, …; scheduled, waiting, active, completed, failed, cancelled; oldest submission among the waiting or "";
--       key, active, waiting, … of keys at their limit}
--
-- `band` is how far apart the bands of a lane are; see `queue-lanes.lua`.
local base, band = KEYS[1], tonumber(ARGV[1])
local call = redis.call

local meta = call("HGETALL", base .. "meta")
if call("HEXISTS", base .. "meta", "concurrency") == 0 then return {} end
local function size(set) return call("ZCARD", base .. set) end

-- Within a band tasks stand in order of submission: the first of each band is looked at.
local oldest, oldest_place
local function look_at(set)
  local from = "-inf"
  while true do
    local first = call("ZRANGE", base .. set, from, "+inf", "BYSCORE", "LIMIT", 0, 1, "WITHSCORES")
    if #first == 0 then return end
    local score = tonumber(first[2])
    local place = score % band
    if not oldest_place or place < oldest_place then oldest, oldest_place = first[1], place end
    from = string.format("%.0f", score - place + band)
  end
end
look_at("lane:-")
look_at("keyed")
local fixed = oldest and call("HGET", base .. "task:" .. oldest, "v") or ""

local busy = {}
local cursor = "0"
repeat
  local page = call("SSCAN", base .. "blocked", cursor, "COUNT", 100)
  cursor = page[1]
  for _, lane in ipairs(page[2]) do
    if #busy < 300 then
      busy[#busy + 1] = lane
      busy[#busy + 1] = call("SCARD", base .. "busy:" .. lane)
      busy[#busy + 1] = size("lane:" .. lane)
    end
  end
until cursor == "0" or #busy >= 300

return {
  meta,
  { size("delayed"), size("lane:-") + size("keyed"), size("active"), size("completed"), size("failed"), size("cancelled") },
  string.match(fixed, "(%d+)$") or "",
  busy,
}
