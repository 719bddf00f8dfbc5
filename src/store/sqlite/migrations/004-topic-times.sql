-- When each topic was published to last, so that those of long ago can be forgotten.
ALTER TABLE topics ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
UPDATE topics SET at = CAST(strftime('%s', 'now') AS INTEGER) * 1000;
