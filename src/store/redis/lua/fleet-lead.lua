-- Takes the leader lease when it is free, or renews one's own. An expired lease that nobody took is renewed.
-- USES clock, token
-- KEYS meta, leader
-- ARGV clock, candidate, leaseMs
-- ->   {1, token, candidate} | {0, "", who leads}
local meta, leader = KEYS[1], KEYS[2]
local candidate = ARGV[2]
local us = now_us()
local now = math.floor(us / 1000)

local holder, token, ends = string.match(redis.call("GET", leader) or "", "^(.*)|(%d+)|(%d+)$")
if holder and holder ~= candidate and tonumber(ends) > now then return { 0, "", holder } end
if holder ~= candidate then token = next_token(meta, us) end
redis.call("SET", leader, candidate .. "|" .. token .. "|" .. int(now + tonumber(ARGV[3])))
return { 1, token, candidate }
