-- A limit's state: per key the last grant, and per window the theoretical arrival time (tat) of the next permit, in microseconds.
--
-- It is kept as `<at of the last grant> <its cost>`, for each window `;<id> <limit> <perMs> <burst> <tat> <1 where of the last call>`, and for
-- each grant that was given back before its time, while others stood behind it, `|<at> <cost>`, earliest first.
-- A permit counts for whole microseconds, rounded up: so never more are granted than the limit says.

local function limit_read(text)
  local state = { at = "0", cost = "0", tats = {}, texts = {}, back = {} }
  if not text then return state end
  state.at, state.cost = string.match(text, "^(%d+) (%d+)")
  for id, window, tat in string.gmatch(text, ";(%S+) (%d+ %d+ %d+) (%d+) %d") do
    state.tats[id], state.texts[id] = tonumber(tat), window
  end
  for at, cost in string.gmatch(text, "|(%d+) (%d+)") do
    state.back[#state.back + 1] = { at = tonumber(at), cost = tonumber(cost) }
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

-- The earliest grant of this cost that was given back and whose time has not come; its place in the list.
local function limit_again(state, cost, us)
  for i, one in ipairs(state.back) do
    if one.at >= us and one.cost == cost then return i, one.at end
  end
end

-- Takes what a grant had added off again.
local function limit_lower(state, windows, cost)
  for _, window in ipairs(windows) do
    state.tats[window.id] = math.max(0, (state.tats[window.id] or 0) - cost * window.step)
  end
end

-- A grant that was given back and behind which nobody stands any more is as if it had never been. What a single window had made wait left
-- the tat a burst behind it: while it still stands there, nothing was taken since.
local function limit_shorten(state, windows)
  if #windows > 1 then return end
  local window = windows[1]
  local last = state.back[#state.back]
  while last and state.tats[window.id] == last.at + window.burst * window.step do
    limit_lower(state, windows, last.cost)
    state.at, state.cost = "0", "0"
    state.back[#state.back] = nil
    last = state.back[#state.back]
  end
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
  for _, one in ipairs(state.back) do
    if one.at > us then text = text .. "|" .. int(one.at) .. " " .. int(one.cost) end
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
