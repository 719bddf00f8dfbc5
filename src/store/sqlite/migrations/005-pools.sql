-- One row per pool: what holds for all of it.
CREATE TABLE pools (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  ns         TEXT NOT NULL,
  name       TEXT NOT NULL,
  settings   TEXT NOT NULL,               -- JSON
  totals     TEXT NOT NULL,               -- JSON; written in the step that moves the items
  last_token INTEGER NOT NULL,            -- greatest fencing token given out, store microseconds
  last_turn  INTEGER NOT NULL DEFAULT 0,  -- greatest number given to an item that was put or released, or to a place in line
  moved      INTEGER NOT NULL DEFAULT 0,  -- how often something became free, or a line moved
  UNIQUE (ns, name)
);

CREATE TABLE pool_items (
  seq            INTEGER PRIMARY KEY AUTOINCREMENT,
  pool_id        INTEGER NOT NULL,
  id             NOT NULL,
  nr             INTEGER NOT NULL,   -- grows with each put into the pool
  state          TEXT NOT NULL,
  since          INTEGER NOT NULL,   -- with `rank`: its place among the items of its state, as in `pool_item_tags`
  rank           INTEGER NOT NULL,
  tags           TEXT NOT NULL,      -- JSON, as matched
  uses           INTEGER NOT NULL DEFAULT 0,
  score          INTEGER NOT NULL DEFAULT 0,
  put_at         INTEGER NOT NULL,
  expires_at     INTEGER,            -- end of its time to live; NULL for never
  last_used_at   INTEGER,
  released_at    INTEGER,            -- end of its last claim; NULL before the first
  turn           INTEGER NOT NULL,   -- order among those released, or put, in one millisecond
  holder         TEXT,
  held_by        TEXT,
  held_since     INTEGER,
  lease_until    INTEGER,
  hold_ms        INTEGER,
  auto_extend    INTEGER NOT NULL DEFAULT 0,
  token          INTEGER,            -- of the present claim
  request        TEXT,               -- what it was claimed by
  cool_until     INTEGER,
  retired_reason TEXT,
  retired_note,
  retired_at     INTEGER,
  UNIQUE (pool_id, id)
);
CREATE INDEX pool_items_state ON pool_items (pool_id, state, nr);
CREATE INDEX pool_items_lease ON pool_items (pool_id, lease_until, token) WHERE state = 'held';
CREATE INDEX pool_items_holder ON pool_items (pool_id, holder, token) WHERE state = 'held';
CREATE INDEX pool_items_request ON pool_items (pool_id, request, token) WHERE state = 'held';
CREATE INDEX pool_items_cool ON pool_items (pool_id, cool_until, turn) WHERE state = 'cooling';
CREATE INDEX pool_items_ttl ON pool_items (pool_id, expires_at) WHERE state IN ('free', 'cooling') AND expires_at IS NOT NULL;
CREATE INDEX pool_items_age ON pool_items (pool_id, put_at) WHERE state IN ('free', 'cooling');
CREATE INDEX pool_items_retired ON pool_items (pool_id, retired_at, seq) WHERE state = 'retired';

-- Apart from the items, so that a change of state does not write a long payload anew.
CREATE TABLE pool_payloads (
  seq       INTEGER PRIMARY KEY,
  payload   NOT NULL,
  tags_json NOT NULL
);

-- Each item under each value of each of its tags, and once under the empty tag. Within one state, all rows of an item stand at one place:
-- free ones in the order in which they are given out, held and cooling ones by when they will be free.
CREATE TABLE pool_item_tags (
  pool_id INTEGER NOT NULL,
  tag     TEXT NOT NULL,
  value   TEXT NOT NULL,
  state   TEXT NOT NULL,
  since   INTEGER NOT NULL,
  rank    INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  PRIMARY KEY (pool_id, tag, value, state, since, rank, seq)
) WITHOUT ROWID;

-- How many items of each state bear a value; under the empty tag, how many there are.
CREATE TABLE pool_tag_counts (
  pool_id INTEGER NOT NULL,
  tag     TEXT NOT NULL,
  value   TEXT NOT NULL,
  free    INTEGER NOT NULL DEFAULT 0,
  held    INTEGER NOT NULL DEFAULT 0,
  cooling INTEGER NOT NULL DEFAULT 0,
  retired INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (pool_id, tag, value)
) WITHOUT ROWID;

-- Who waits. All with an equal wish stand in one line.
CREATE TABLE pool_waiters (
  pool_id   INTEGER NOT NULL,
  request   TEXT NOT NULL,
  line      TEXT NOT NULL,     -- JSON: the wish
  place     INTEGER NOT NULL,
  n         INTEGER NOT NULL,
  holder    TEXT NOT NULL,
  asked_by  TEXT NOT NULL,
  since     INTEGER NOT NULL,
  until     INTEGER NOT NULL,  -- forgotten unless heard of before
  PRIMARY KEY (pool_id, request)
) WITHOUT ROWID;
CREATE INDEX pool_waiters_line ON pool_waiters (pool_id, line, place, until);
CREATE INDEX pool_waiters_place ON pool_waiters (pool_id, place);
CREATE INDEX pool_waiters_until ON pool_waiters (pool_id, until);
CREATE INDEX pool_waiters_holder ON pool_waiters (pool_id, holder);

-- Wishes of how many items there should be.
CREATE TABLE pool_refills (
  pool_id INTEGER NOT NULL,
  line    TEXT NOT NULL,
  refill  TEXT NOT NULL,       -- JSON
  PRIMARY KEY (pool_id, line)
) WITHOUT ROWID;
