-- Of whoever leads: one of higher rank takes the lead over from one of lower rank.
ALTER TABLE fleets ADD COLUMN leader_rank INTEGER NOT NULL DEFAULT 0;
