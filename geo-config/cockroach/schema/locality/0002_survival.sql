-- The database goes on while a whole region is lost, at the price of a round
-- trip between regions for each commit.
-- Regions needed: 3
-- Elsewhere: nothing. With one or two regions CockroachDB survives the loss of
-- a zone, as it does by itself; PostgreSQL survives what its operator sets up.

ALTER DATABASE {database} SURVIVE REGION FAILURE;
