-- Store time, the one clock of all scripts. For tests, ARGV[1] shifts it by "+n" or "-n" milliseconds, or stops it at "=n".
-- ARGV clock
local function now_us()
  local clock = ARGV[1]
  if string.sub(clock, 1, 1) == "=" then return tonumber(string.sub(clock, 2)) * 1000 end
  local time = redis.call("TIME")
  local us = tonumber(time[1]) * 1000000 + tonumber(time[2])
  if clock ~= "" then us = us + tonumber(clock) * 1000 end
  return us
end

local function now_ms()
  return math.floor(now_us() / 1000)
end

-- Numbers as text: tostring() would round them to 14 digits.
local function int(number)
  return string.format("%.0f", number)
end
