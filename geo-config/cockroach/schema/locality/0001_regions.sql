-- The regions that the database spans.
-- Regions needed: 1
-- Elsewhere: nothing. A PostgreSQL stands at one place.

ALTER DATABASE {database} SET PRIMARY REGION {primary};

ALTER DATABASE {database} ADD REGION IF NOT EXISTS {region};
