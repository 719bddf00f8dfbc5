-- Whatever the submitter of a task wants to know it again by.
ALTER TABLE tasks ADD COLUMN print TEXT;
