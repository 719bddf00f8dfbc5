-- Keys of a counter's name in order, with their values.
-- KEYS values
-- ARGV n, from
-- ->   {key, value, key, value, …}
--
-- `from` is "-" for the first, or "(" and the key before.
local values = KEYS[1]

local found = {}
for _, key in ipairs(redis.call("ZRANGE", values .. ":keys", ARGV[2], "+", "BYLEX", "LIMIT", "0", ARGV[1])) do
  found[#found + 1], found[#found + 2] = key, redis.call("HGET", values, key)
end
return found
