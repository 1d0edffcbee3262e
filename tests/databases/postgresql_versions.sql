-- What each version of PostgreSQL brought. What stands between /*14*/ and /*-*/ is not in earlier versions, what stands
-- between /*<14*/ and /*-*/ not in later ones.
CREATE EXTENSION btree_gist;
CREATE TABLE counted (a int, b int);
ALTER TABLE counted ALTER a SET STATISTICS 0;
CREATE STATISTICS counted_s ON a, b FROM counted;
ALTER STATISTICS counted_s SET STATISTICS 0;

/*<14*/
CREATE FUNCTION half(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 / 2';
CREATE OPERATOR !~> (LEFTARG = int, FUNCTION = half);
COMMENT ON OPERATOR !~> (int, NONE) IS 'behind its operand';
CREATE VIEW halved AS SELECT (8 !~>) AS half;
/*-*/

CREATE TABLE source (a int, b int);

/*14*/
CREATE VIEW searched AS WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5)
    SEARCH BREADTH FIRST BY n SET turn CYCLE n SET again USING path SELECT n, again FROM t ORDER BY turn;
CREATE VIEW grouped AS SELECT a, b, count(*) FROM counted GROUP BY DISTINCT ROLLUP (a), CUBE (a, b);
CREATE VIEW subscripted AS SELECT ('{"a":{"b":1}}'::jsonb)['a']['b'] AS x, extract(year FROM date '2024-01-01') AS y;
CREATE FUNCTION lowest(anycompatiblemultirange) RETURNS anycompatible LANGUAGE sql AS 'SELECT lower($1)';
CREATE TABLE pressed (a text COMPRESSION pglz, b text);
CREATE TABLE pressed_heir (c text) INHERITS (pressed);
CREATE INDEX pressed_many ON counted USING brin (a int4_minmax_multi_ops (values_per_range = 16), b int4_bloom_ops);
/*-*/

/*15*/
CREATE FUNCTION merged() RETURNS void BEGIN ATOMIC MERGE INTO public.counted c USING public.source p ON c.a = p.a
    WHEN MATCHED AND c.b > 1 THEN UPDATE SET b = 2 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (p.a, 0); END;
CREATE TABLE single (a int PRIMARY KEY, b int, UNIQUE NULLS NOT DISTINCT (b));
CREATE TABLE single_ref (x int, y int, FOREIGN KEY (x) REFERENCES single (b) ON DELETE SET DEFAULT (x));
INSERT INTO single VALUES (1, NULL), (2, 3);
/*-*/

/*16*/
CREATE COLLATION ruled (provider = icu, locale = 'und', rules = '&V << w <<< W');
CREATE TABLE ruled_text (a text COLLATE ruled, b text STORAGE EXTERNAL);
CREATE VIEW made_json AS SELECT JSON_ARRAY(1, 2 NULL ON NULL RETURNING text) AS a, JSON_OBJECT('x': 1 ABSENT ON NULL WITH UNIQUE KEYS) AS o,
    '{}' IS JSON OBJECT WITH UNIQUE KEYS AS i, JSON_ARRAYAGG(a ORDER BY a) AS g, JSON_OBJECTAGG(a: b) AS h FROM (SELECT 1 AS a, 2 AS b) q;
CREATE VIEW spelt AS SELECT 0x1F AS a, 1_000 AS b, any_value(a) AS c FROM counted;
CREATE TABLE computed (k int, a int, v int GENERATED ALWAYS AS (a * 2) STORED) PARTITION BY LIST (k);
CREATE TABLE computed_1 (k int, a int, v int GENERATED ALWAYS AS (a * 4) STORED); ALTER TABLE computed ATTACH PARTITION computed_1 FOR VALUES IN (1);
CREATE TABLE computed_2 PARTITION OF computed FOR VALUES IN (2); ALTER TABLE computed_2 ALTER v SET NOT NULL;
INSERT INTO computed VALUES (1, 3), (2, 3);
/*-*/

/*17*/
CREATE COLLATION built_in (provider = builtin, locale = 'C.UTF-8');
CREATE TABLE built_text (a text COLLATE built_in PRIMARY KEY, b text COLLATE pg_catalog.pg_c_utf8);
CREATE TABLE numbered (id bigint GENERATED ALWAYS AS IDENTITY (START 5), k int, v text) PARTITION BY LIST (k);
CREATE TABLE numbered_1 PARTITION OF numbered FOR VALUES IN (1);
CREATE TABLE numbered_2 PARTITION OF numbered FOR VALUES IN (2) PARTITION BY RANGE (id);
CREATE TABLE numbered_2_all PARTITION OF numbered_2 DEFAULT;
CREATE TABLE numbered_3 (v text, k int, id bigint NOT NULL); ALTER TABLE numbered ATTACH PARTITION numbered_3 FOR VALUES IN (3);
INSERT INTO numbered (k, v) VALUES (1, 'a'), (2, 'b'), (3, 'c');
CREATE TABLE apart (a int, r int4range, EXCLUDE USING gist (a WITH =, r WITH &&)) PARTITION BY LIST (a);
CREATE TABLE apart_1 PARTITION OF apart FOR VALUES IN (1);
CREATE VIEW json_rows AS SELECT * FROM JSON_TABLE('[{"a":1,"b":[1,2]}]', '$[*]' AS root COLUMNS (id FOR ORDINALITY,
    a int PATH '$.a' DEFAULT 0 ON EMPTY ERROR ON ERROR, NESTED PATH '$.b[*]' AS n COLUMNS (b int PATH '$')));
CREATE VIEW json_parts AS SELECT JSON_VALUE('{"a":1}', '$.a' RETURNING int) AS v, JSON_QUERY('{"a":[1]}', '$.a' WITH WRAPPER) AS q,
    JSON_EXISTS('{}', '$.a') AS e, JSON_SCALAR(1) AS s, JSON_SERIALIZE('{}' RETURNING bytea) AS z, JSON('{"a":1}') AS j;
CREATE FUNCTION merge_back() RETURNS SETOF text BEGIN ATOMIC MERGE INTO public.counted c USING public.source p ON c.a = p.a
    WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED BY TARGET THEN DO NOTHING RETURNING merge_action(); END;
CREATE FUNCTION watch() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
CREATE EVENT TRIGGER at_login ON login EXECUTE FUNCTION watch();
CREATE EVENT TRIGGER at_reindex ON ddl_command_start WHEN TAG IN ('REINDEX') EXECUTE FUNCTION watch();
CREATE ACCESS METHOD heap2 TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE stored (a int) PARTITION BY LIST (a) USING heap2;
CREATE TABLE stored_1 PARTITION OF stored FOR VALUES IN (1);
CREATE TABLE stored_2 PARTITION OF stored FOR VALUES IN (2) USING heap;
CREATE TABLE stored_3 PARTITION OF stored FOR VALUES IN (3) PARTITION BY LIST (a); ALTER TABLE stored_3 SET ACCESS METHOD DEFAULT;
CREATE TABLE stored_3_all PARTITION OF stored_3 DEFAULT;
INSERT INTO stored VALUES (1), (2), (3);
GRANT MAINTAIN ON counted TO PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT MAINTAIN ON TABLES TO PUBLIC;
CREATE MATERIALIZED VIEW kept AS SELECT 1 AS a; REVOKE MAINTAIN ON kept FROM CURRENT_USER;
CREATE DOMAIN there AS int CONSTRAINT must_be_there NOT NULL CONSTRAINT positive CHECK (VALUE > 0);
COMMENT ON CONSTRAINT must_be_there ON DOMAIN there IS 'never NULL';
CREATE TABLE endless (i interval, a interval[]); INSERT INTO endless VALUES ('infinity', '{1 day,-infinity}'), ('1 mon', NULL);
CREATE TABLE there_rows (a there); INSERT INTO there_rows VALUES (1);
/*-*/

/*18*/
-- Columns that are computed when they are read
CREATE TABLE virtual (a int, v int GENERATED ALWAYS AS (a * 2), s text GENERATED ALWAYS AS (a::text) STORED, u uuid DEFAULT uuidv7(), CHECK (v > 0));
ALTER TABLE virtual ADD n int GENERATED ALWAYS AS (a + 1) VIRTUAL NOT NULL; COMMENT ON COLUMN virtual.v IS 'computed';
CREATE TABLE virtual_heir (a int, v int GENERATED ALWAYS AS (a * 3) VIRTUAL) INHERITS (virtual);
INSERT INTO virtual (a) VALUES (1), (5); INSERT INTO virtual_heir (a) VALUES (7);
CREATE TABLE virtuals (k int, a int, v int GENERATED ALWAYS AS (a * 2)) PARTITION BY LIST (k);
CREATE TABLE virtuals_1 PARTITION OF virtuals FOR VALUES IN (1);
CREATE TABLE virtuals_2 PARTITION OF virtuals (v GENERATED ALWAYS AS (a * 10)) FOR VALUES IN (2);
CREATE TABLE virtuals_3 (a int, v int GENERATED ALWAYS AS (a * 100), k int); ALTER TABLE virtuals ATTACH PARTITION virtuals_3 FOR VALUES IN (3);
INSERT INTO virtuals (k, a) VALUES (1, 1), (2, 2), (3, 3);

-- NOT NULL with names, for heirs or not, proved or not
CREATE TABLE named (a int CONSTRAINT a_must NOT NULL, b int NOT NULL, c int CONSTRAINT c_alone NOT NULL NO INHERIT, d int, e int CONSTRAINT named_e_not_null NOT NULL, f int);
ALTER TABLE named ADD CONSTRAINT d_later NOT NULL d NOT VALID; INSERT INTO named VALUES (1, 1, 1, 1, 1, NULL);
COMMENT ON CONSTRAINT d_later ON named IS 'later'; COMMENT ON CONSTRAINT a_must ON named IS 'must';
CREATE TABLE named_heir () INHERITS (named); ALTER TABLE named_heir ALTER f SET NOT NULL;
CREATE TABLE named_own (a int CONSTRAINT own_a NOT NULL, f int CONSTRAINT own_f NOT NULL) INHERITS (named);
CREATE TABLE named_here (CONSTRAINT here_b NOT NULL b, CONSTRAINT here_f NOT NULL f NO INHERIT) INHERITS (named);
CREATE TABLE named_twice () INHERITS (named, virtual);
CREATE TABLE named_parts (a int CONSTRAINT part_a NOT NULL, b int, c int) PARTITION BY LIST (a);
CREATE TABLE named_part_1 PARTITION OF named_parts FOR VALUES IN (1);
ALTER TABLE named_part_1 ADD CONSTRAINT b_own NOT NULL b; COMMENT ON CONSTRAINT b_own ON named_part_1 IS 'of the partition';
ALTER TABLE named_part_1 ADD CONSTRAINT c_later NOT NULL c NOT VALID;
CREATE TABLE named_part_2 (a int CONSTRAINT other_a NOT NULL, b int, c int); ALTER TABLE named_parts ATTACH PARTITION named_part_2 FOR VALUES IN (2);
CREATE TABLE named_part_3 PARTITION OF named_parts FOR VALUES IN (3); ALTER TABLE named_part_3 ALTER b SET NOT NULL;
CREATE TABLE named_key (id int, x int CONSTRAINT x_key NOT NULL, PRIMARY KEY (id, x)); CREATE TABLE named_key_heir () INHERITS (named_key);
CREATE TABLE broken (a int); INSERT INTO broken VALUES (NULL), (2); ALTER TABLE broken ADD CONSTRAINT a_broken NOT NULL a NOT VALID;
CREATE TABLE "a table with a name that goes on and on" ("and a column with a name that is as long" int NOT NULL);

-- Keys that hold for a time
CREATE TABLE rooms (id int, at daterange, note text, CONSTRAINT rooms_key PRIMARY KEY (id, at WITHOUT OVERLAPS), CONSTRAINT rooms_note UNIQUE (note, at WITHOUT OVERLAPS));
CREATE TABLE stays (id int, room int, at daterange, CONSTRAINT stay_in FOREIGN KEY (room, PERIOD at) REFERENCES rooms (id, PERIOD at));
COMMENT ON CONSTRAINT rooms_key ON rooms IS 'at a time'; COMMENT ON CONSTRAINT stay_in ON stays IS 'for a time';
CREATE TABLE many_times (id int, at datemultirange, PRIMARY KEY (id, at WITHOUT OVERLAPS) DEFERRABLE);
CREATE TABLE parted_times (k int, at daterange, PRIMARY KEY (k, at WITHOUT OVERLAPS)) PARTITION BY LIST (k);
CREATE TABLE parted_times_1 PARTITION OF parted_times FOR VALUES IN (1);
INSERT INTO rooms VALUES (1, '[2024-01-01,2024-02-01)', 'x'), (1, '[2024-02-01,2024-03-01)', 'y'); INSERT INTO stays VALUES (1, 1, '[2024-01-15,2024-02-15)');

-- Constraints that nobody enforces, or not yet
CREATE TABLE told (a int CONSTRAINT a_positive CHECK (a > 0) NOT ENFORCED, b int); CREATE TABLE told_to (id int PRIMARY KEY);
ALTER TABLE told ADD CONSTRAINT b_known FOREIGN KEY (b) REFERENCES told_to NOT ENFORCED; INSERT INTO told VALUES (-1, 99);
COMMENT ON CONSTRAINT a_positive ON told IS 'told'; COMMENT ON CONSTRAINT b_known ON told IS 'hoped';
CREATE TABLE told_heir () INHERITS (told);
CREATE TABLE told_parts (a int, b int CHECK (b > 0) NOT ENFORCED) PARTITION BY LIST (a); CREATE TABLE told_part PARTITION OF told_parts FOR VALUES IN (1);
ALTER TABLE told_parts ADD CONSTRAINT b_known FOREIGN KEY (b) REFERENCES told_to NOT ENFORCED;
ALTER TABLE told_part ADD CONSTRAINT a_small CHECK (a < 9) NOT ENFORCED;
CREATE TABLE later (a int, b int) PARTITION BY LIST (a); CREATE TABLE later_1 PARTITION OF later FOR VALUES IN (1); INSERT INTO later VALUES (1, 77);
ALTER TABLE later ADD CONSTRAINT b_later FOREIGN KEY (b) REFERENCES told_to NOT VALID;

-- The rest
CREATE COLLATION fast (provider = builtin, locale = 'PG_UNICODE_FAST'); CREATE COLLATION alike (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
CREATE TABLE folded (a text COLLATE fast, b text COLLATE alike); INSERT INTO folded VALUES ('ß', 'x');
CREATE VIEW folded_view AS SELECT casefold(a) AS f, b LIKE 'X' AS l, array_sort(ARRAY[3, 1]) AS s FROM folded;
CREATE TABLE tended (a int) WITH (autovacuum_vacuum_max_threshold = 5, vacuum_max_eager_freeze_failure_rate = 0.1, vacuum_truncate = false);
ALTER DEFAULT PRIVILEGES GRANT SELECT ON LARGE OBJECTS TO PUBLIC;
CREATE FUNCTION old_and_new() RETURNS SETOF int BEGIN ATOMIC UPDATE public.told SET a = a + 1 RETURNING WITH (OLD AS o, NEW AS n) o.a + n.a; END;
CREATE PUBLICATION with_computed FOR TABLE computed (k, v) WITH (publish_generated_columns = stored, publish_via_partition_root = true);
/*-*/
