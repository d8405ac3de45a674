-- How long old versions are kept. Every change writes the line of table state,
-- and every poll reads it: old versions of it only cost time.
-- Regions needed: 0
-- Elsewhere: nothing. PostgreSQL removes old versions while it reads.

ALTER TABLE state CONFIGURE ZONE USING gc.ttlseconds = 600;
