-- One row per queue: what holds for all of it.
CREATE TABLE queues (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  ns         TEXT NOT NULL,
  name       TEXT NOT NULL,
  settings   TEXT NOT NULL,               -- JSON
  tallies    TEXT NOT NULL,               -- JSON: tasks by state, totals, failures by reason; written in the step that moves the tasks
  last_token INTEGER NOT NULL,            -- greatest fencing token given out, store microseconds
  last_turn  INTEGER NOT NULL DEFAULT 0,  -- greatest place in the row of lanes given out
  claimable  INTEGER NOT NULL DEFAULT 0,  -- whether the last step left something that could be claimed
  readied    INTEGER NOT NULL DEFAULT 0,  -- how often there was something to claim after there had been nothing
  UNIQUE (ns, name)
);

-- Tasks, in order of submission. A lane is the key with a colon before it, or empty for tasks without a key.
CREATE TABLE tasks (
  seq           INTEGER PRIMARY KEY,
  queue_id      INTEGER NOT NULL,
  id            NOT NULL,
  state         TEXT NOT NULL,
  lane          NOT NULL,
  priority      INTEGER NOT NULL,
  attempts      INTEGER NOT NULL DEFAULT 0,
  crashes       INTEGER NOT NULL DEFAULT 0,
  interruptions INTEGER NOT NULL DEFAULT 0,
  max_attempts  INTEGER NOT NULL,
  timeout_ms    INTEGER NOT NULL,
  ttl_ms        INTEGER NOT NULL,
  submitted_at  INTEGER NOT NULL,
  due_at        INTEGER NOT NULL,
  expires_at    INTEGER,                     -- end of its time to live; NULL for never, and once it has started
  started_at    INTEGER,
  finished_at   INTEGER,
  worker        TEXT,
  holder        TEXT,
  lease_until   INTEGER,
  token         INTEGER,                     -- of the present claim
  settled_token INTEGER,                     -- of the last claim that was settled
  cancelling    INTEGER NOT NULL DEFAULT 0,
  asked         INTEGER NOT NULL DEFAULT 0,  -- somebody waits for its end
  dedupe_key,
  bears_key     INTEGER NOT NULL DEFAULT 0,  -- whether `dedupe_key` belongs to it
  schedule      TEXT,                        -- with `tick_at`: the tick that it stands for
  tick_at       INTEGER,
  reason        TEXT,
  result,
  error,
  UNIQUE (queue_id, id)
);
CREATE INDEX tasks_next ON tasks (queue_id, lane, priority DESC, seq) WHERE state = 'waiting';
CREATE INDEX tasks_oldest ON tasks (queue_id, seq) WHERE state = 'waiting';
CREATE INDEX tasks_ttl ON tasks (queue_id, expires_at) WHERE state = 'waiting' AND expires_at IS NOT NULL;
CREATE INDEX tasks_due ON tasks (queue_id, due_at, seq) WHERE state = 'scheduled';
CREATE INDEX tasks_lease ON tasks (queue_id, lease_until) WHERE state = 'active';
CREATE INDEX tasks_holder ON tasks (queue_id, holder, token) WHERE state = 'active';
CREATE INDEX tasks_ended ON tasks (queue_id, state, finished_at, seq) WHERE finished_at IS NOT NULL;
CREATE UNIQUE INDEX tasks_dedupe ON tasks (queue_id, dedupe_key) WHERE bears_key = 1;

-- Apart from the tasks, so that a change of state does not write a long payload anew.
CREATE TABLE task_payloads (
  seq     INTEGER PRIMARY KEY,
  payload NOT NULL
);

-- Lanes that have waiting or active tasks. Those of which something could be claimed stand in a row and have a turn.
CREATE TABLE queue_lanes (
  queue_id INTEGER NOT NULL,
  lane     NOT NULL,
  waiting  INTEGER NOT NULL,
  active   INTEGER NOT NULL,
  head     INTEGER,  -- priority of the first waiting task, while the lane has a turn
  turn     INTEGER,
  PRIMARY KEY (queue_id, lane)
) WITHOUT ROWID;
CREATE INDEX queue_lanes_row ON queue_lanes (queue_id, head DESC, turn) WHERE turn IS NOT NULL;
CREATE INDEX queue_lanes_blocked ON queue_lanes (queue_id) WHERE turn IS NULL AND waiting > 0;

-- Windows of `throttle` that are open, or were not long ago.
CREATE TABLE queue_throttles (
  queue_id   INTEGER NOT NULL,
  dedupe_key NOT NULL,
  task_id    NOT NULL,
  until      INTEGER NOT NULL,
  PRIMARY KEY (queue_id, dedupe_key)
) WITHOUT ROWID;
CREATE INDEX queue_throttles_until ON queue_throttles (queue_id, until);

-- Schedules, and the last tick of each that was submitted. A removed one leaves its ticks and its revision for a while.
CREATE TABLE queue_schedules (
  ns         TEXT NOT NULL,
  queue      TEXT NOT NULL,
  id         TEXT NOT NULL,
  spec       TEXT,              -- JSON; NULL once removed
  paused     INTEGER NOT NULL DEFAULT 0,
  since      INTEGER NOT NULL DEFAULT 0,
  last_tick  INTEGER,
  revision   INTEGER NOT NULL DEFAULT 0,
  submitted  INTEGER,           -- the last tick for which there is, or was, a task
  removed_at INTEGER,
  PRIMARY KEY (ns, queue, id)
) WITHOUT ROWID;
CREATE INDEX queue_schedules_removed ON queue_schedules (ns, queue, removed_at) WHERE removed_at IS NOT NULL;

-- The newest ends of tasks that somebody waited for, from which the watches of all processes read. Numbers are never used twice.
CREATE TABLE queue_ends (
  n       INTEGER PRIMARY KEY AUTOINCREMENT,
  ns      TEXT NOT NULL,
  queue   TEXT NOT NULL,
  task_id NOT NULL
);
