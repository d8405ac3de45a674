-- Where the rows are.
-- Regions needed: 1
-- Elsewhere: ordinary tables. The same statements read and write them.

-- Newer versions make tables that refuse such a change unless told otherwise.
ALTER TABLE cluster SET (schema_locked = false);

ALTER TABLE sites SET (schema_locked = false);

ALTER TABLE users SET (schema_locked = false);

ALTER TABLE migrations SET (schema_locked = false);

ALTER TABLE nodes SET (schema_locked = false);

ALTER TABLE slices SET (schema_locked = false);

ALTER TABLE node_sites SET (schema_locked = false);

ALTER TABLE slice_members SET (schema_locked = false);

ALTER TABLE state SET (schema_locked = false);

ALTER TABLE audit SET (schema_locked = false);

ALTER TABLE batches SET (schema_locked = false);

-- Small and rarely changed: every region reads its own copy without a delay.
ALTER TABLE cluster SET LOCALITY GLOBAL;

ALTER TABLE sites SET LOCALITY GLOBAL;

ALTER TABLE users SET LOCALITY GLOBAL;

ALTER TABLE migrations SET LOCALITY GLOBAL;

-- Rows of nodes and slices live where they are changed from: near the node, and
-- near the slice's active. A change from another region moves the row there.
ALTER TABLE nodes SET LOCALITY REGIONAL BY ROW;

ALTER TABLE nodes ALTER COLUMN crdb_region SET ON UPDATE rehome_row()::public.crdb_internal_region;

ALTER TABLE slices SET LOCALITY REGIONAL BY ROW;

ALTER TABLE slices ALTER COLUMN crdb_region SET ON UPDATE rehome_row()::public.crdb_internal_region;

ALTER TABLE node_sites SET LOCALITY REGIONAL BY ROW;

ALTER TABLE slice_members SET LOCALITY REGIONAL BY ROW;

-- The counters order all changes, so they have one home, and what is written
-- with every change lives beside them.
ALTER TABLE state SET LOCALITY REGIONAL BY TABLE IN PRIMARY REGION;

ALTER TABLE audit SET LOCALITY REGIONAL BY TABLE IN PRIMARY REGION;

ALTER TABLE batches SET LOCALITY REGIONAL BY TABLE IN PRIMARY REGION;
