-- Left out when shop.siard was restored. The statements are those of SQLite 3.54.1.
-- They come from the archive: read each one before you run it.

-- trigger no_delete of main.item: it is written for another product
CREATE TRIGGER "no_delete" BEFORE DELETE ON "main"."item"
WHEN old.sold BEGIN SELECT raise(ABORT, 'sold'); END;
