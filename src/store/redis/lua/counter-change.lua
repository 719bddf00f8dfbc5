-- Adds to a counter, sets it, or sets it where it stands at a value; each operation of a producer once.
-- KEYS values
-- ARGV producer, seq, key, how, value, expected
-- ->   {"done" | "overflow" | "set" | "different", value, value before, 1 where the name is new}
--
-- `how` is add, set or compare. Beyond 2^53 - 1 numbers would not be exact any more.
local call = redis.call
local values, operation = KEYS[1], KEYS[1] .. ":op:" .. ARGV[1]
local key, how = ARGV[3], ARGV[4]
local MOST = 9007199254740991

local last = call("GET", operation)
if last then
  local seq, outcome, value, before = string.match(last, "^(%d+) (%S+) (%S+) (%S+)$")
  if tonumber(ARGV[2]) <= tonumber(seq) then return { outcome, value, before, 0 } end
end

local before = call("HGET", values, key) or "0"
local value, outcome = ARGV[5], "done"
if how == "add" then
  local sum = tonumber(before) + tonumber(ARGV[5])
  value = string.format("%.0f", sum)
  if sum > MOST or sum < -MOST then outcome = "overflow" end
elseif how == "compare" then
  outcome = before == ARGV[6] and "set" or "different"
end

local new = 0
if outcome == "overflow" or outcome == "different" then
  value = before
elseif call("HSET", values, key, value) == 1 then
  call("ZADD", values .. ":keys", "0", key)
  if call("HLEN", values) == 1 then new = 1 end
end
-- Known for an hour: a repeat comes within the deadline of one call.
call("SET", operation, ARGV[2] .. " " .. outcome .. " " .. value .. " " .. before, "PX", "3600000")
return { outcome, value, before, new }
