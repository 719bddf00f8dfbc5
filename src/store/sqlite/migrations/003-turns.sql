-- Who may take slots of an automation down for a planned move, so that not all workers do so together.
CREATE TABLE turns (
  ns         TEXT NOT NULL,
  automation TEXT NOT NULL,
  holder     TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (ns, automation, holder)
) WITHOUT ROWID;
