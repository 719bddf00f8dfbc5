-- One row per namespace: its fleet and what counts for all of it.
CREATE TABLE fleets (
  ns             TEXT PRIMARY KEY,
  fleet_id       TEXT NOT NULL,
  revision       INTEGER NOT NULL DEFAULT 0,
  last_token     INTEGER NOT NULL DEFAULT 0,  -- greatest fencing token given out, store microseconds
  leader         TEXT,
  leader_token   INTEGER NOT NULL DEFAULT 0,
  leader_expires INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- Streams. Entries leave at the head only, so those with head_seq <= seq < next_seq are exactly the ones that lie there.
CREATE TABLE streams (
  id                INTEGER PRIMARY KEY AUTOINCREMENT,
  ns                TEXT NOT NULL,
  name              TEXT NOT NULL,
  max_length        INTEGER NOT NULL,
  ttl_ms            INTEGER NOT NULL,
  max_payload_bytes INTEGER NOT NULL,
  head_seq          INTEGER NOT NULL DEFAULT 1,
  next_seq          INTEGER NOT NULL DEFAULT 1,
  last_at           INTEGER NOT NULL DEFAULT 0,  -- the stream's own time, which never goes back
  skew              INTEGER NOT NULL DEFAULT 0,  -- the stream's own time minus store time
  pushed            INTEGER NOT NULL DEFAULT 0,
  popped            INTEGER NOT NULL DEFAULT 0,
  trimmed           INTEGER NOT NULL DEFAULT 0,
  expired           INTEGER NOT NULL DEFAULT 0,
  invalid           INTEGER NOT NULL DEFAULT 0,
  UNIQUE (ns, name)
);

CREATE TABLE stream_entries (
  stream_id INTEGER NOT NULL,
  seq       INTEGER NOT NULL,
  at        INTEGER NOT NULL,  -- the stream's own time; grows with seq
  entry     NOT NULL,
  PRIMARY KEY (stream_id, seq)
) WITHOUT ROWID;

-- The last call of each producer, so that a repeated push does nothing.
CREATE TABLE stream_ops (
  stream_id INTEGER NOT NULL,
  producer  TEXT NOT NULL,
  seq       INTEGER NOT NULL,
  at        INTEGER NOT NULL,
  PRIMARY KEY (stream_id, producer)
) WITHOUT ROWID;

CREATE TABLE stream_quarantine (
  stream_id INTEGER NOT NULL,
  seq       INTEGER NOT NULL,
  raw       NOT NULL,
  reason    TEXT NOT NULL,
  PRIMARY KEY (stream_id, seq)
) WITHOUT ROWID;

-- Events: a ring of the newest ones, from which subscribers of all processes read. Ids are never used twice.
CREATE TABLE events (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  ns      TEXT NOT NULL,
  topic   TEXT NOT NULL,
  seq     INTEGER NOT NULL,
  ts      INTEGER NOT NULL,
  source  TEXT NOT NULL,
  payload TEXT NOT NULL,
  total   INTEGER NOT NULL  -- characters of all payloads up to this one, to bound the ring's size
);

CREATE TABLE topics (
  ns    TEXT NOT NULL,
  topic TEXT NOT NULL,
  seq   INTEGER NOT NULL,
  PRIMARY KEY (ns, topic)
) WITHOUT ROWID;

-- Registry.
CREATE TABLE workers (
  ns           TEXT NOT NULL,
  id           TEXT NOT NULL,
  incarnation  TEXT NOT NULL,
  generation   INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  info         TEXT NOT NULL,
  slots        TEXT NOT NULL,
  PRIMARY KEY (ns, id)
) WITHOUT ROWID;

-- Outlives the worker's record, so that the count of incarnations never goes back.
CREATE TABLE worker_generations (
  ns         TEXT NOT NULL,
  id         TEXT NOT NULL,
  generation INTEGER NOT NULL,
  at         INTEGER NOT NULL,
  PRIMARY KEY (ns, id)
) WITHOUT ROWID;

CREATE TABLE manifests (
  ns        TEXT NOT NULL,
  worker_id TEXT NOT NULL,
  manifests TEXT NOT NULL,
  PRIMARY KEY (ns, worker_id)
) WITHOUT ROWID;

CREATE TABLE desired (
  ns         TEXT NOT NULL,
  name       TEXT NOT NULL,
  generation INTEGER NOT NULL,
  desired    TEXT NOT NULL,
  PRIMARY KEY (ns, name)
) WITHOUT ROWID;

CREATE TABLE assignments (
  ns          TEXT PRIMARY KEY,
  assignments TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE leases (
  ns          TEXT NOT NULL,
  automation  TEXT NOT NULL,
  slot_id     INTEGER NOT NULL,
  worker_id   TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  token       INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  PRIMARY KEY (ns, automation, slot_id)
) WITHOUT ROWID;

CREATE TABLE slot_state (
  ns         TEXT NOT NULL,
  automation TEXT NOT NULL,
  slot_id    INTEGER NOT NULL,
  value      TEXT NOT NULL,
  PRIMARY KEY (ns, automation, slot_id)
) WITHOUT ROWID;

-- Restarts and their causes, kept so that a slot's history and an open circuit move with it.
CREATE TABLE slot_health (
  ns         TEXT NOT NULL,
  automation TEXT NOT NULL,
  slot_id    INTEGER NOT NULL,
  health     TEXT NOT NULL,
  PRIMARY KEY (ns, automation, slot_id)
) WITHOUT ROWID;
