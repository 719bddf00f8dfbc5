-- A limit's state: per key the last grant, and per window the theoretical arrival time (tat) of the next permit, in microseconds.
--
-- It is kept as `<at of the last grant> <its cost>` and, for each window, `;<id> <limit> <perMs> <burst> <tat> <1 where of the last call>`.
-- A permit counts for whole microseconds, rounded up: so never more are granted than the limit says.

local function limit_read(text)
  local state = { at = "0", cost = "0", tats = {}, texts = {} }
  if not text then return state end
  state.at, state.cost = string.match(text, "^(%d+) (%d+)")
  for id, window, tat in string.gmatch(text, ";(%S+) (%d+ %d+ %d+) (%d+) %d") do
    state.tats[id], state.texts[id] = tonumber(tat), window
  end
  return state
end

-- Windows as they were given: id, limit, perMs, burst, and so on.
local function limit_windows(args, from, last)
  local windows = {}
  for i = from, last, 4 do
    windows[#windows + 1] = {
      id = args[i],
      text = args[i + 1] .. " " .. args[i + 2] .. " " .. args[i + 3],
      step = math.ceil(tonumber(args[i + 2]) * 1000 / tonumber(args[i + 1])),
      burst = tonumber(args[i + 3]),
    }
  end
  return windows
end

-- Keeps a state, and until when it counts. Answers whether its key is new.
local function limit_write(base, key, state, windows, us)
  local text, free = state.at .. " " .. state.cost, 0
  for _, window in ipairs(windows) do
    local tat = state.tats[window.id] or 0
    text = text .. ";" .. window.id .. " " .. window.text .. " " .. int(tat) .. " 1"
    free = math.max(free, tat)
    state.tats[window.id] = nil
  end
  -- Windows that this call does not have still count for others, until they are free.
  for id, tat in pairs(state.tats) do
    if tat > us then
      text = text .. ";" .. id .. " " .. state.texts[id] .. " " .. int(tat) .. " 0"
      free = math.max(free, tat)
    end
  end
  redis.call("ZADD", base .. ":free", int(free), key)
  return redis.call("HSET", base, key, text) == 1
end

-- Forgets up to `n` keys whose windows are all free. Answers how many.
local function limit_forget(base, us, n)
  local keys = redis.call("ZRANGE", base .. ":free", "-inf", int(us), "BYSCORE", "LIMIT", "0", n)
  for _, key in ipairs(keys) do
    redis.call("HDEL", base, key)
    redis.call("ZREM", base .. ":free", key)
  end
  return #keys
end
