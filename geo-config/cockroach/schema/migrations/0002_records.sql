-- Records of the control plane: accounts, sessions. Nobody follows them, so they
-- have no index of revisions, and a removed one leaves no line.

CREATE TABLE IF NOT EXISTS records (
	key BYTEA PRIMARY KEY,
	revision INT8 NOT NULL,
	body TEXT NOT NULL
);
