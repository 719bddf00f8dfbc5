-- One task; with `ask` marks it too, so that its end is told.
-- USES queue-record, queue-ask
-- KEYS base
-- ARGV id, ask
-- ->   the task, see `queue-record.lua`, or nil
local base, id = KEYS[1], ARGV[1]

if ARGV[2] == "1" then ask(base, id) end
return record_of(base, id)
