-- Enters a name into the set of all names of one kind.
-- KEYS names
-- ARGV name
-- FLAGS allow-oom
-- ->   1 where it is new
return redis.call("SADD", KEYS[1], ARGV[1])
