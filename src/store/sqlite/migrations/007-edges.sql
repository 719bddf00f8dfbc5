-- Observed use: who used what in which direction, how often, and how often in which minute.
CREATE TABLE edges (
  ns         TEXT NOT NULL,
  direction  TEXT NOT NULL,
  name       TEXT NOT NULL,
  from_kind  TEXT NOT NULL,
  from_name  TEXT NOT NULL,
  count      INTEGER NOT NULL,
  first_seen INTEGER NOT NULL,
  last_seen  INTEGER NOT NULL,
  minute     INTEGER NOT NULL,
  current    INTEGER NOT NULL,
  before     INTEGER NOT NULL,
  PRIMARY KEY (ns, direction, name, from_kind, from_name)
) WITHOUT ROWID;
CREATE INDEX edges_seen ON edges (ns, last_seen);
