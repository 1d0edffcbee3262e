-- Left out when a.siard was restored. The statements are those of PostgreSQL 15.18.
-- They come from the archive: read each one before you run it.

-- definition of schema public: it is not one statement that defines something
SELECT pg_catalog.setval('"public"."%%Z''a _number_seq"', 1, false);
