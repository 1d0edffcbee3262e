-- A database that uses what few people do: every definition here comes back, or is named.
CREATE SCHEMA "a.b";
CREATE SCHEMA rich;
SET search_path = rich, public;

-- Names with everything in them
CREATE TABLE "a.b"."t.u" ("c.d" int PRIMARY KEY, "line
end" text, "quote""d" text, "'apos'" text, "back\slash" text, "ünïcode 字" text, "trailing " text, "{}%s$1" int);
INSERT INTO "a.b"."t.u" VALUES (1, E'a\nb', '"', '''', E'\\', 'ü', ' ', 5);
CREATE INDEX "i.x" ON "a.b"."t.u" ("line
end", lower("quote""d"));
COMMENT ON COLUMN "a.b"."t.u"."line
end" IS E'two\nlines';

-- Tables without columns, and with nothing but generated ones
CREATE TABLE zero ();
CREATE TABLE computed (a int, b int GENERATED ALWAYS AS (a * 2) STORED, c text GENERATED ALWAYS AS (a::text || 'x') STORED);
INSERT INTO computed (a) VALUES (1), (NULL);
/*18*/ CREATE TABLE virtual (a int, b int GENERATED ALWAYS AS (a + 1) VIRTUAL); INSERT INTO virtual VALUES (1); /*-*/
/*18*/ CREATE TABLE named_nulls (a int CONSTRAINT a_must_be NOT NULL, b int, c int CONSTRAINT c_local NOT NULL NO INHERIT);
ALTER TABLE named_nulls ADD CONSTRAINT b_later NOT NULL b NOT VALID; COMMENT ON CONSTRAINT a_must_be ON named_nulls IS 'why'; /*-*/
/*18*/ CREATE TABLE told (a int, CONSTRAINT a_pos CHECK (a > 0) NOT ENFORCED); INSERT INTO told VALUES (-1); /*-*/
/*18*/ CREATE TABLE rooms (id int4range, at daterange, PRIMARY KEY (id, at WITHOUT OVERLAPS));
CREATE TABLE stays (id int, room int4range, at daterange, FOREIGN KEY (room, PERIOD at) REFERENCES rooms (id, PERIOD at));
INSERT INTO rooms VALUES ('[1,2)', '[2024-01-01,2024-02-01)'); INSERT INTO stays VALUES (1, '[1,2)', '[2024-01-03,2024-01-05)'); /*-*/

-- Types in types
CREATE DOMAIN d1 AS numeric(10,2) DEFAULT 1.5 CHECK (VALUE >= 0);
CREATE DOMAIN d2 AS d1 NOT NULL CHECK (VALUE < 1000);
CREATE DOMAIN d_arr AS int[] CHECK (array_length(VALUE, 1) < 5);
CREATE DOMAIN d_text AS text COLLATE "C";
CREATE TYPE leaf AS (x int, y numeric(6,3), z text COLLATE "C");
CREATE TYPE branch AS (l leaf, ls leaf[], d d2, t timestamptz(2));
CREATE TYPE tree AS (b branch, bs branch[], e text);
CREATE DOMAIN d_leaf AS leaf CHECK ((VALUE).x > 0);
CREATE TYPE dotted AS ENUM ('a.b', 'c,d', 'e"f', '', ' g ');
CREATE TYPE textspan AS RANGE (subtype = text, collation = "C");
CREATE TYPE husk;
CREATE FUNCTION husk_in(cstring) RETURNS rich.husk LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION husk_out(husk) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
CREATE TYPE husk (INPUT = husk_in, OUTPUT = husk_out, INTERNALLENGTH = VARIABLE, STORAGE = extended);
CREATE TABLE nests (
    id int PRIMARY KEY, d d1, dd d2, da d_arr, dt d_text, l leaf, b branch, t tree, ts tree[], dl d_leaf, e dotted, es dotted[],
    sp textspan, m2 int[], m3 text[], low int[], bounds text[], ranges int4range[], js jsonb[], iv interval[]);
INSERT INTO nests VALUES (1, 1.25, 2.5, '{1,2}', 'Ä', ROW(1, 2.5, 'z'), ROW(ROW(1, NULL, ''), ARRAY[ROW(2, 3.125, 'q"')::leaf, NULL], 3, '2024-01-01 12:00:00.25+01'),
    ROW(NULL, '{}', 'e'), ARRAY[ROW(ROW(NULL, NULL, 1, NULL), NULL, 'x')::tree], ROW(7, NULL, NULL), 'e"f', '{"c,d",""," g "}',
    '[a,b)', '{{1,2},{3,4}}', '{{{a,b},{c,d}},{{e,NULL},{"NULL",""}}}', '[-2:0]={1,2,3}', '[0:1][5:6]={{a,b},{c,d}}',
    '{"[1,5)",empty}', ARRAY['{"a": [1, 2]}'::jsonb, 'null', NULL], '{1 day,"-2 mons +3 days 04:05:06.7"}');
CREATE TABLE husks (a husk, b dotted);
INSERT INTO husks VALUES ('husked', '');
INSERT INTO nests (id, dd) VALUES (2, 1);

-- Operators, casts, operator classes, aggregates of all kinds
CREATE FUNCTION leaf_lt(a leaf, b leaf) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT (a).x < (b).x';
CREATE FUNCTION leaf_eq(a leaf, b leaf) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT (a).x = (b).x';
CREATE FUNCTION leaf_cmp(a leaf, b leaf) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT (a).x - (b).x';
CREATE OPERATOR <<< (LEFTARG = leaf, RIGHTARG = leaf, FUNCTION = leaf_lt, RESTRICT = scalarltsel);
CREATE OPERATOR === (LEFTARG = leaf, RIGHTARG = leaf, FUNCTION = leaf_eq, COMMUTATOR = ===, HASHES, MERGES);
COMMENT ON OPERATOR === (leaf, leaf) IS 'equal leaves';
CREATE OPERATOR CLASS leaf_ops FOR TYPE leaf USING btree AS OPERATOR 1 <<<, OPERATOR 3 ===, FUNCTION 1 leaf_cmp(leaf, leaf);
CREATE FUNCTION leaf_text(leaf) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ($1).x::text';
CREATE CAST (leaf AS text) WITH FUNCTION leaf_text(leaf) AS ASSIGNMENT;
CREATE AGGREGATE longest(text) (sfunc = textcat, stype = text, initcond = '', finalfunc = upper, parallel = safe);
CREATE AGGREGATE mid(float8 ORDER BY anyelement) (sfunc = ordered_set_transition, stype = internal, finalfunc = percentile_disc_final, finalfunc_extra);
CREATE TABLE by_class (l leaf);
CREATE INDEX by_class_i ON by_class USING btree (l leaf_ops);
CREATE TABLE patterns (t text, EXCLUDE USING hash (t WITH =) WHERE (t <> 'x'));
CREATE INDEX patterns_i ON patterns (t text_pattern_ops DESC, (length(t)) int4_ops);
CREATE INDEX patterns_brin ON patterns USING brin (t) WITH (pages_per_range = 16);

-- Partitions below partitions, attached ones with other orders of columns
CREATE TABLE sales (id bigint GENERATED BY DEFAULT AS IDENTITY, region text NOT NULL, at date NOT NULL, amount d1, PRIMARY KEY (id, region, at)) PARTITION BY LIST (region);
CREATE TABLE sales_eu PARTITION OF sales FOR VALUES IN ('eu', 'uk') PARTITION BY RANGE (at);
CREATE TABLE sales_eu_old PARTITION OF sales_eu FOR VALUES FROM (MINVALUE) TO ('2020-01-01') PARTITION BY HASH (id);
CREATE TABLE sales_eu_old_0 PARTITION OF sales_eu_old FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE sales_eu_old_1 PARTITION OF sales_eu_old FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE sales_eu_new (at date NOT NULL, amount d1, region text NOT NULL, extra_dropped int, id bigint NOT NULL);
ALTER TABLE sales_eu_new DROP COLUMN extra_dropped;
ALTER TABLE sales_eu ATTACH PARTITION sales_eu_new FOR VALUES FROM ('2020-01-01') TO (MAXVALUE);
CREATE TABLE sales_rest PARTITION OF sales DEFAULT;
ALTER TABLE sales_rest ALTER COLUMN amount SET DEFAULT 9;
CREATE INDEX sales_amount ON sales (amount);
CREATE UNIQUE INDEX sales_rest_u ON sales_rest (id, amount) WHERE amount > 0;
INSERT INTO sales (region, at, amount) SELECT (ARRAY['eu','uk','us'])[1 + n % 3], '2019-06-01'::date + n * 30, n FROM generate_series(1, 30) n;
CREATE TABLE refers (id bigint, region text, at date, FOREIGN KEY (id, region, at) REFERENCES sales ON DELETE CASCADE);
INSERT INTO refers SELECT id, region, at FROM sales LIMIT 3;

-- Inheritance with more than one parent, and columns merged
CREATE TABLE p1 (a int DEFAULT 1, shared text);
CREATE TABLE p2 (shared text, c date CHECK (c > '1900-01-01'));
CREATE TABLE heir (own int, a int DEFAULT 2) INHERITS (p1, p2);
INSERT INTO p1 VALUES (1, 'p1'); INSERT INTO p2 VALUES ('p2', '2000-01-01'); INSERT INTO heir VALUES (3, 'h', '2001-01-01', 4);
CREATE TABLE typed OF leaf (PRIMARY KEY (x));
INSERT INTO typed VALUES (1, 2.5, 'q');

-- Constraints
CREATE TABLE strict (
    id int GENERATED ALWAYS AS IDENTITY (START 10 INCREMENT 5 MINVALUE 5 MAXVALUE 1000 CYCLE CACHE 3) PRIMARY KEY,
    a int CONSTRAINT a_check CHECK (a > 0), b int, c text, period tsrange,
    CONSTRAINT ab CHECK (a < b), CONSTRAINT late_u UNIQUE (c) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT late_x EXCLUDE USING gist (period WITH &&) WHERE (a > 1) DEFERRABLE,
    CONSTRAINT inc UNIQUE (a, b) INCLUDE (c) WITH (fillfactor = 80));
/*15*/ ALTER TABLE strict ADD CONSTRAINT nnd UNIQUE NULLS NOT DISTINCT (b, c); /*-*/
CREATE TABLE cycle_a (id int PRIMARY KEY, b int); CREATE TABLE cycle_b (id int PRIMARY KEY, a int REFERENCES cycle_a DEFERRABLE);
ALTER TABLE cycle_a ADD FOREIGN KEY (b) REFERENCES cycle_b (id) DEFERRABLE INITIALLY DEFERRED;
BEGIN; INSERT INTO cycle_a VALUES (1, 1); INSERT INTO cycle_b VALUES (1, 1); COMMIT;
/*15*/ CREATE TABLE lets_go (a int, b int, FOREIGN KEY (a) REFERENCES cycle_a ON DELETE SET NULL (a)); /*-*/
COMMENT ON CONSTRAINT late_x ON strict IS 'no overlap';

-- Storage
CREATE UNLOGGED TABLE quick (x int, y text) WITH (fillfactor = 60, autovacuum_enabled = off, toast.autovacuum_enabled = off);
ALTER TABLE quick ALTER y SET STORAGE MAIN, ALTER x SET STATISTICS 500, ALTER x SET (n_distinct = -0.5);
/*14*/ ALTER TABLE quick ALTER y SET COMPRESSION pglz; /*-*/
CREATE STATISTICS quick_s (ndistinct, dependencies, mcv) ON x, y FROM quick;
/*14*/ CREATE STATISTICS quick_e ON (x + 1), (lower(y)) FROM quick; COMMENT ON STATISTICS quick_e IS 'expressions'; /*-*/
ALTER STATISTICS quick_s SET STATISTICS 77;
CREATE SEQUENCE loose AS smallint INCREMENT -2 MINVALUE -100 MAXVALUE 100 START 4 CACHE 2 CYCLE;
SELECT nextval('loose');
CREATE TABLE serials (a smallserial, b serial, c bigserial, d int DEFAULT nextval('loose'));
INSERT INTO serials DEFAULT VALUES;

-- Views on views, with everything
CREATE VIEW nothing AS SELECT; COMMENT ON VIEW nothing IS 'no column at all';
CREATE VIEW v0 AS SELECT id, region, amount FROM sales WHERE amount > 3;
CREATE VIEW v1 WITH (security_barrier, check_option = cascaded) AS SELECT id, region FROM v0;
ALTER VIEW v1 ALTER COLUMN region SET DEFAULT 'eu';
/*15*/ CREATE VIEW v_inv WITH (security_invoker) AS SELECT * FROM v0; /*-*/
CREATE RECURSIVE VIEW countdown (n) AS SELECT 5 UNION ALL SELECT n - 1 FROM countdown WHERE n > 0;
CREATE MATERIALIZED VIEW m0 WITH (fillfactor = 70) AS SELECT region, sum(amount) AS total FROM v0 GROUP BY region;
CREATE UNIQUE INDEX m0_u ON m0 (region);
CREATE VIEW on_m0 AS SELECT * FROM m0;
CREATE MATERIALIZED VIEW m1 AS SELECT count(*) FROM on_m0;
CREATE VIEW lateral_view AS SELECT s.id, x.n FROM sales s, LATERAL generate_series(1, 2) AS x(n) WHERE s.region = ANY (ARRAY['eu'::text]);
COMMENT ON COLUMN v1.id IS 'a number';

-- Routines of all kinds
CREATE FUNCTION over(a int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION over(a text, b int DEFAULT 3) RETURNS text LANGUAGE sql COST 7 PARALLEL SAFE LEAKPROOF AS $body$ SELECT a || $$x$$ || b $body$;
CREATE FUNCTION over(VARIADIC anyarray) RETURNS anyelement LANGUAGE sql AS 'SELECT $1[1]';
CREATE FUNCTION tabled(lim int) RETURNS TABLE (id bigint, r text) LANGUAGE plpgsql STABLE ROWS 50 SET search_path = rich SET work_mem = '8MB' SECURITY DEFINER AS $$
BEGIN RETURN QUERY SELECT s.id, s.region FROM sales s LIMIT lim; END $$;
CREATE PROCEDURE proc(IN a int, INOUT b text, INOUT c numeric DEFAULT 1) LANGUAGE plpgsql AS $$ BEGIN b := b || a; END $$;
/*14*/ CREATE PROCEDURE outs(IN a int, OUT b int) LANGUAGE sql BEGIN ATOMIC SELECT a * 2; END; /*-*/
/*14*/ CREATE FUNCTION parsed(a leaf) RETURNS SETOF leaf LANGUAGE sql BEGIN ATOMIC SELECT (a).x, (a).y, (a).z UNION SELECT * FROM typed; END; /*-*/
CREATE FUNCTION windowed(int) RETURNS int LANGUAGE internal WINDOW AS 'window_rank';
COMMENT ON PROCEDURE proc(int, text, numeric) IS 'in and out';

-- Triggers and rules
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN COALESCE(NEW, OLD); END $$;
CREATE TRIGGER t1 BEFORE INSERT OR UPDATE OF a, b OR DELETE ON strict FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION note('arg', '1');
CREATE TRIGGER t2 AFTER UPDATE ON strict REFERENCING OLD TABLE AS was NEW TABLE AS is_now FOR EACH STATEMENT EXECUTE FUNCTION note();
CREATE TRIGGER t3 INSTEAD OF DELETE ON v0 FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER t4 AFTER INSERT ON sales FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER t5 BEFORE TRUNCATE ON quick FOR EACH STATEMENT EXECUTE FUNCTION note();
ALTER TABLE strict ENABLE ALWAYS TRIGGER t1; ALTER TABLE strict DISABLE TRIGGER t2;
ALTER TABLE sales_rest DISABLE TRIGGER t4;
CREATE RULE r1 AS ON INSERT TO v0 WHERE NEW.id > 5 DO INSTEAD INSERT INTO quick VALUES (NEW.id, 'r1');
CREATE RULE r0 AS ON DELETE TO p2 DO ALSO NOTIFY seen;
CREATE RULE r2 AS ON UPDATE TO p2 DO ALSO (INSERT INTO quick VALUES (1, 'r2'); DELETE FROM quick WHERE x = 2);
COMMENT ON RULE r2 ON p2 IS 'two things';

-- Security
ALTER TABLE strict ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY pol1 ON strict AS PERMISSIVE FOR UPDATE TO PUBLIC USING (a > 1) WITH CHECK (b > 2);
CREATE POLICY pol2 ON strict AS RESTRICTIVE USING (c <> 'secret');

-- Text search, conversions, foreign data, events, publications
CREATE TEXT SEARCH CONFIGURATION plainly (COPY = simple);
CREATE TEXT SEARCH TEMPLATE tmpl (INIT = dsimple_init, LEXIZE = dsimple_lexize);
CREATE TEXT SEARCH PARSER pars (START = prsd_start, GETTOKEN = prsd_nexttoken, END = prsd_end, LEXTYPES = prsd_lextype);
CREATE CONVERSION odd_latin FOR 'LATIN1' TO 'UTF8' FROM iso8859_1_to_utf8;
CREATE FOREIGN DATA WRAPPER elsewhere OPTIONS (debug 'true');
CREATE SERVER far TYPE 'x' VERSION '1' FOREIGN DATA WRAPPER elsewhere OPTIONS (host 'h');
CREATE USER MAPPING FOR PUBLIC SERVER far OPTIONS (password 'dont-archive-me');
CREATE FUNCTION on_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE DEBUG 'ddl'; END $$;
CREATE EVENT TRIGGER watch ON ddl_command_end WHEN TAG IN ('DROP TABLE') EXECUTE FUNCTION on_ddl();
CREATE PUBLICATION few FOR TABLE strict, sales WITH (publish = 'insert');
CREATE PUBLICATION all_of_it FOR ALL TABLES;
ALTER DEFAULT PRIVILEGES IN SCHEMA rich GRANT SELECT ON TABLES TO PUBLIC;
ALTER DATABASE :"DBNAME" SET work_mem = '5MB';
COMMENT ON DATABASE :"DBNAME" IS 'riches';
SELECT lo_from_bytea(424242, 'alone');
COMMENT ON LARGE OBJECT 424242 IS 'nobody refers to it';
