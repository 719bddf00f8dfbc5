-- What is asked of workers, by id and kind: it outlives the worker's record.
CREATE TABLE worker_wishes (
  ns        TEXT NOT NULL,
  worker_id TEXT NOT NULL,
  kind      TEXT NOT NULL,
  wish      TEXT NOT NULL,
  PRIMARY KEY (ns, worker_id, kind)
) WITHOUT ROWID;
