-- The tables of DESIGN 3, for CockroachDB and PostgreSQL alike.
-- A statement ends with a semicolon at the end of its line, and may be repeated.

CREATE TABLE IF NOT EXISTS state (
	one INT8 PRIMARY KEY CHECK (one = 1),
	revision INT8 NOT NULL,
	audit INT8 NOT NULL,
	keys INT8 NOT NULL,
	-- The sum of an archive that was loaded, and how many of its lines are here;
	-- -1: all.
	archive TEXT NOT NULL DEFAULT '',
	archive_lines INT8 NOT NULL DEFAULT -1
);

INSERT INTO state (one, revision, audit, keys) VALUES (1, 0, 0, 0) ON CONFLICT (one) DO NOTHING;

CREATE TABLE IF NOT EXISTS cluster (
	key TEXT PRIMARY KEY,
	revision INT8 NOT NULL,
	body TEXT
);

CREATE INDEX IF NOT EXISTS cluster_revision ON cluster (revision);

CREATE TABLE IF NOT EXISTS sites (
	key TEXT PRIMARY KEY,
	revision INT8 NOT NULL,
	body TEXT
);

CREATE INDEX IF NOT EXISTS sites_revision ON sites (revision);

CREATE TABLE IF NOT EXISTS nodes (
	key TEXT PRIMARY KEY,
	revision INT8 NOT NULL,
	body TEXT
);

CREATE INDEX IF NOT EXISTS nodes_revision ON nodes (revision);

CREATE TABLE IF NOT EXISTS slices (
	key INT8 PRIMARY KEY,
	revision INT8 NOT NULL,
	body TEXT
);

CREATE INDEX IF NOT EXISTS slices_revision ON slices (revision);

CREATE TABLE IF NOT EXISTS users (
	key TEXT PRIMARY KEY,
	revision INT8 NOT NULL,
	body TEXT
);

CREATE INDEX IF NOT EXISTS users_revision ON users (revision);

-- Which row names which other one: a node its site, a slice its members.
CREATE TABLE IF NOT EXISTS node_sites (
	node TEXT PRIMARY KEY,
	site TEXT NOT NULL
);

CREATE INDEX IF NOT EXISTS node_sites_site ON node_sites (site);

CREATE TABLE IF NOT EXISTS slice_members (
	slice INT8 NOT NULL,
	node TEXT NOT NULL,
	PRIMARY KEY (slice, node)
);

CREATE INDEX IF NOT EXISTS slice_members_node ON slice_members (node);

CREATE TABLE IF NOT EXISTS audit (
	number INT8 PRIMARY KEY,
	revision INT8 NOT NULL,
	record TEXT NOT NULL
);

-- The keys of batches; revision 0: settled as never to be applied.
CREATE TABLE IF NOT EXISTS batches (
	number INT8 PRIMARY KEY,
	key BYTEA NOT NULL UNIQUE,
	revision INT8 NOT NULL
);
