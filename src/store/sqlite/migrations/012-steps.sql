-- By when each topic was published to last, so that those of long ago are found without a look at the others.
CREATE INDEX topics_at ON topics (ns, at);

-- Number (`nr`) of the last free item that has its place by the strategy that a pool was given last; NULL where all have.
ALTER TABLE pools ADD COLUMN renewing INTEGER;

-- When each wish was left last, so that those of claims that nobody makes any more are forgotten.
ALTER TABLE pool_refills ADD COLUMN left_at INTEGER NOT NULL DEFAULT 0;
UPDATE pool_refills SET left_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000;
CREATE INDEX pool_refills_left ON pool_refills (pool_id, left_at);
