-- Takes the leader lease when it is free or held by one of lower rank, or renews one's own. An expired lease that nobody took is renewed.
-- USES clock, token
-- KEYS meta, leader
-- ARGV clock, candidate, leaseMs, rank
-- FLAGS allow-oom
-- ->   {1, token, candidate} | {0, "", who leads}
local meta, leader = KEYS[1], KEYS[2]
local candidate, rank = ARGV[2], ARGV[4]
local us = now_us()
local now = math.floor(us / 1000)

local holder, token, ends, held = string.match(redis.call("GET", leader) or "", "^(.*)|(%d+)|(%d+)|(%d)$")
if holder and holder ~= candidate and tonumber(ends) > now and held >= rank then return { 0, "", holder } end
if holder ~= candidate then token = next_token(meta, us) end
redis.call("SET", leader, candidate .. "|" .. token .. "|" .. int(now + tonumber(ARGV[3])) .. "|" .. rank)
return { 1, token, candidate }
