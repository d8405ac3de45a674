-- Where the records are.
-- Regions needed: 1
-- Elsewhere: an ordinary table. The same statements read and write it.

ALTER TABLE records SET (schema_locked = false);

-- Every node reads a session with each request, and seldom writes one: every
-- region reads its own copy without a delay.
ALTER TABLE records SET LOCALITY GLOBAL;
