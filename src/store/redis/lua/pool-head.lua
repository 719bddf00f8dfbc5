-- What the quickest answers need of a pool, and no more: what else a script defines takes longer than these.

-- The kinds of marks, see `pool.lua`.
local HELD, LAST, COOL, RETIRED = 4503599627370496, 5629499534213120, 6755399441055744, 7881299347898368
-- `head` of `meta` is what each call needs: what `p.open` reads, and behind that the totals.
local HEAD, SUMS = ">dI6BI4I6i4I6dI6I4I6I4I4I6", ">I6I6I6I6I6I6"

local function read_head(base)
  return redis.call("HGET", base .. "meta", "head")
end
