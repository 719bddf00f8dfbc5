-- Gives the fleet its id, schema version and revision where it has none yet: at the first connection, and after a loss of all data.
-- USES clock
-- KEYS meta
-- ARGV clock, id, schema
-- FLAGS allow-oom
-- ->   {fleet id, schema version} that hold now
local meta = KEYS[1]
local id, schema = ARGV[2], ARGV[3]

redis.call("HSETNX", meta, "fleetId", id)
redis.call("HSETNX", meta, "schema", schema)
redis.call("HSETNX", meta, "revision", int(now_ms()))
return redis.call("HMGET", meta, "fleetId", "schema")
