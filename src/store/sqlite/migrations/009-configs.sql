-- Changes of config, the newest of each automation. `version` is JSON: what was changed to what, by whom.
CREATE TABLE configs (
  ns         TEXT NOT NULL,
  name       TEXT NOT NULL,
  generation INTEGER NOT NULL,
  at         INTEGER NOT NULL,
  version    TEXT NOT NULL,
  PRIMARY KEY (ns, name, generation)
) WITHOUT ROWID;
