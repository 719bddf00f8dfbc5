-- Locks: at most one grant per key, and the line of those who wait for it.
CREATE TABLE lock_grants (
  ns      TEXT NOT NULL,
  name    TEXT NOT NULL,
  key     TEXT NOT NULL,
  token   INTEGER NOT NULL,
  since   INTEGER NOT NULL,
  until   INTEGER NOT NULL,
  request TEXT NOT NULL,
  holder  TEXT NOT NULL,
  held_by TEXT NOT NULL,
  PRIMARY KEY (ns, name, key)
) WITHOUT ROWID;
CREATE INDEX lock_grants_until ON lock_grants (ns, until);
CREATE INDEX lock_grants_holder ON lock_grants (ns, name, holder);

CREATE TABLE lock_waiters (
  place    INTEGER PRIMARY KEY AUTOINCREMENT,
  ns       TEXT NOT NULL,
  name     TEXT NOT NULL,
  key      TEXT NOT NULL,
  request  TEXT NOT NULL,
  holder   TEXT NOT NULL,
  held_by  TEXT NOT NULL,
  since    INTEGER NOT NULL,
  patience INTEGER NOT NULL,  -- forgotten from then on, unless it asks again
  UNIQUE (ns, name, key, request)
);
CREATE INDEX lock_waiters_line ON lock_waiters (ns, name, key, place);
CREATE INDEX lock_waiters_patience ON lock_waiters (ns, patience);
CREATE INDEX lock_waiters_holder ON lock_waiters (ns, name, holder);

-- The newest keys that came free for somebody, from which the watches of all processes read. Numbers are never used twice.
CREATE TABLE lock_news (
  n    INTEGER PRIMARY KEY AUTOINCREMENT,
  ns   TEXT NOT NULL,
  name TEXT NOT NULL,
  key  TEXT NOT NULL
);

CREATE TABLE counters (
  ns    TEXT NOT NULL,
  name  TEXT NOT NULL,
  key   TEXT NOT NULL,
  value INTEGER NOT NULL,
  PRIMARY KEY (ns, name, key)
) WITHOUT ROWID;

-- The last change of each producer, so that a repeat does nothing and is answered as the first time.
CREATE TABLE counter_ops (
  ns       TEXT NOT NULL,
  name     TEXT NOT NULL,
  producer TEXT NOT NULL,
  seq      INTEGER NOT NULL,
  outcome  TEXT NOT NULL,
  value    INTEGER NOT NULL,
  before   INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  PRIMARY KEY (ns, name, producer)
) WITHOUT ROWID;
CREATE INDEX counter_ops_at ON counter_ops (ns, at);

-- Rate limits: per key the last grant, and per window the theoretical arrival time of the next permit, all in microseconds.
CREATE TABLE limits (
  ns      TEXT NOT NULL,
  name    TEXT NOT NULL,
  key     TEXT NOT NULL,
  last_at INTEGER NOT NULL,
  cost    INTEGER NOT NULL,
  windows TEXT NOT NULL,  -- JSON
  free_at INTEGER NOT NULL,
  PRIMARY KEY (ns, name, key)
) WITHOUT ROWID;
CREATE INDEX limits_free ON limits (ns, free_at);

-- Grants of the last minute by request, for those whose answer was lost.
CREATE TABLE limit_requests (
  ns      TEXT NOT NULL,
  name    TEXT NOT NULL,
  request TEXT NOT NULL,
  at      INTEGER NOT NULL,
  made    INTEGER NOT NULL,
  PRIMARY KEY (ns, name, request)
) WITHOUT ROWID;
CREATE INDEX limit_requests_made ON limit_requests (ns, made);
