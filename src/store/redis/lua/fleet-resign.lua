-- Gives the leader lease up, if it is the candidate's.
-- KEYS leader
-- ARGV candidate
-- FLAGS allow-oom
-- ->   how many leases ended
local leader = KEYS[1]

local holder = string.match(redis.call("GET", leader) or "", "^(.*)|%d+|%d+|%d$")
if holder ~= ARGV[1] then return 0 end
return redis.call("DEL", leader)
