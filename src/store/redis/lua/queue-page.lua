-- Tasks of one set from behind a place on, in its order or against it.
-- USES queue-record
-- KEYS base
-- ARGV set, n, order, score, id
-- ->   {the tasks, see `queue-record.lua`, score of the last one or "", 1 where more follow}
--
-- The place is a score ("" for the begin) and an id. `order` is "rising", "falling", or "ties" where several may have one score.
local set, n, order, score, id = KEYS[1] .. ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local call = redis.call

local found
if order == "falling" then
  local from = score == "" and "+inf" or "(" .. score
  found = call("ZRANGE", set, from, "-inf", "BYSCORE", "REV", "LIMIT", 0, n + 1, "WITHSCORES")
elseif order == "ties" and score ~= "" then
  -- Tasks of one score stand by their ids. For a moment a mark stands behind the place, whoever stood there.
  local mark = id .. "\0"
  call("ZADD", set, score, mark)
  local rank = call("ZRANK", set, mark)
  call("ZREM", set, mark)
  found = call("ZRANGE", set, rank, rank + n, "WITHSCORES")
else
  local from = score == "" and "-inf" or "(" .. score
  found = call("ZRANGE", set, from, "+inf", "BYSCORE", "LIMIT", 0, n + 1, "WITHSCORES")
end

local tasks = {}
for i = 1, math.min(#found / 2, n) do tasks[i] = record_of(KEYS[1], found[2 * i - 1]) end
return { tasks, found[2 * #tasks] or "", #found / 2 > n and 1 or 0 }
