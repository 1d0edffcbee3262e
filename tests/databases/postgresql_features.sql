-- Every built-in type of PostgreSQL and every kind of definition that an archive has to bring back.
-- What stands between /*14*/ and /*-*/ is not in earlier versions.
CREATE EXTENSION hstore;
CREATE EXTENSION lo;
CREATE EXTENSION citext;
CREATE EXTENSION btree_gist;
CREATE SCHEMA "Odd Name";
COMMENT ON SCHEMA "Odd Name" IS 'an odd name';

-- Types
CREATE TYPE mood AS ENUM ('sad', 'ok', 'it''s "happy"');
COMMENT ON TYPE mood IS 'moods';
CREATE TYPE addr AS (street text, zip varchar(10), tags text[]);
CREATE TYPE "Odd Name".person AS (name text, home public.addr, born date);
CREATE DOMAIN posint AS integer CHECK (VALUE > 0);
COMMENT ON DOMAIN posint IS 'positive';
CREATE DOMAIN small_posint AS posint CONSTRAINT small CHECK (VALUE < 100);
CREATE DOMAIN email AS text NOT NULL DEFAULT 'x@y' CHECK (VALUE ~ '@');
CREATE DOMAIN intlist AS int[];
CREATE DOMAIN home AS addr;
CREATE TYPE floatrange AS RANGE (subtype = float8, subtype_diff = float8mi);
CREATE COLLATION "Odd Name".german (provider = icu, locale = 'de-DE');
CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);

CREATE TEXT SEARCH DICTIONARY plain (TEMPLATE = pg_catalog.simple, stopwords = 'english');
CREATE TEXT SEARCH CONFIGURATION "Odd Name".searched (PARSER = pg_catalog."default");
ALTER TEXT SEARCH CONFIGURATION "Odd Name".searched ADD MAPPING FOR word, email WITH public.plain, english_stem;

-- Sequences
CREATE SEQUENCE standalone AS smallint START 5 INCREMENT 3 MAXVALUE 500 CYCLE;
COMMENT ON SEQUENCE standalone IS 'on its own';
SELECT nextval('standalone');
CREATE SEQUENCE "Odd Name".down INCREMENT -1 MINVALUE -100 MAXVALUE 100 START 7;

-- Routines that definitions below need
CREATE FUNCTION twice(i int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT 2 * i';
CREATE FUNCTION is_fine(t text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN t <> 'bad'; END $$;

CREATE TABLE everything (
    id serial PRIMARY KEY, b boolean, i2 smallint, i4 integer, i8 bigint, n numeric, n12 numeric(12,2), r real,
    d double precision, m money, c char(5), c1 char, v varchar(20), vv varchar, t text, nm name, ch "char", bp bpchar,
    by bytea, da date, ti time, ti3 time(3), tz timetz, ts timestamp, ts0 timestamp(0), tstz timestamptz(3),
    iv interval, ivym interval year to month, ivmix interval, ivsec interval second(3), u uuid, j json, jb jsonb,
    jp jsonpath, x xml, bi bit(5), vb varbit, vb9 varbit(9), ine inet, ci cidr, ma macaddr, ma8 macaddr8,
    po point, li line, ls lseg, bo box, pa path, pg polygon, cr circle,
    r4 int4range, r8 int8range, nr numrange, tr tsrange, tzr tstzrange, dr daterange,
    /*14*/ m4 int4multirange, m8 int8multirange, mn nummultirange, mt tsmultirange, mtz tstzmultirange, md datemultirange, /*-*/
    tv tsvector, tq tsquery, o oid, xi xid, ci2 cid, x8 xid8, td tid, lsn pg_lsn, sn pg_snapshot, ls2 txid_snapshot,
    rc regclass, rt regtype, rr regrole, rn regnamespace, rp regprocedure, rf regconfig, i2v int2vector, ov oidvector,
    l lo, hs hstore, ct citext, mo mood, ad addr, pe "Odd Name".person, pi posint, sp small_posint, em email,
    il intlist, hm home, fr floatrange, ia int[], ta text[], na numeric(8,2)[], i2d int[][], lb int[], ba bytea[],
    bla boolean[], tsa timestamp[], tsz timestamptz[], moa mood[], aa addr[], boxes box[], pia posint[], iva interval[]
    /*15*/, neg numeric(3,-2), deep numeric(2,4) /*-*/
);
INSERT INTO everything (id, em) VALUES (1, 'a@b');
INSERT INTO everything VALUES (
    2, true, -5, 7, 9223372036854775807, 123456789012345678901234567890.123450, 1.50, 0.1, '-Infinity',
    -1234.56, 'ab', 'x', E'x\ty\\N\r\n', '  ', 'long ' || repeat('ü', 5000), 'nm', 'q', 'pad  ', '\x00ff41',
    '2024-02-29', '23:59:59.999999', '12:30:00.5', '12:30:00.25+02:30', '2024-02-29 12:30:00.05', '0001-01-01 00:00:00',
    '2024-02-29 12:30:00.123+02', '-1 day -02:03:04.5', '1 year 2 months', '1 mon -3 days 4.000001 s', '59.999 s',
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"a": 1.10,  "a":2}', '{"b": 1.10, "a": "\\u00e9"}', '$.a[*] ? (@ > 1)',
    '<a href="x">é &amp; <!-- c --></a>', B'10101', B'1', B'', '10.0.0.1/24', '2001:db8::/32', '08:00:2b:01:02:03',
    '08:00:2b:01:02:03:04:05', '(1.5,2)', '{1,2,3}', '((0,0),(1,1))', '((0,0),(1,1))', '[(0,0),(1,1)]',
    '((0,0),(1,1),(2,2))', '<(0,0),1e-7>', '[1,5)', 'empty', '(,2.50]', '[2024-01-01,)', '["2024-01-01 00:00+01",)',
    '[2024-01-01,2024-02-01)', /*14*/ '{[1,3),[5,7)}', '{}', '{[1.5,2]}', '{}', '{["2024-01-01 00:00+01",)}', '{}', /*-*/
    'a:1A fat:2 ''it''''s''', 'a & !b', 4711, '5', '6', '18446744073709551615', '(3,4)', '0/16B3740', '10:20:10,14,15',
    '10:20:10,14', 'pg_class', 'integer', 'postgres', 'pg_catalog', 'twice(integer)', 'english', '1 2 3', '4 5',
    lo_from_bytea(0, decode(repeat('ab', 10000), 'hex')), 'a=>1, b=>NULL, "c d"=>"\"q\""', 'CiT', 'it''s "happy"',
    ROW('s', 'z', ARRAY['a', 'b c', NULL, 'x']), ROW('n', ROW('s "q" \', NULL, '{}'), '2000-01-01'), 5, 6, 'q@r', '{1,2}',
    ROW('h', NULL, NULL), '[1.5,2.5]', '{1,2,3}', '{a,"b c",NULL,"NULL","",x}', '{1.50,-2.25}', '{{1,2},{3,4}}', '[0:1]={1,2}',
    ARRAY['\x01ff'::bytea, ''], '{t,f,NULL,t}', ARRAY['2024-01-01 01:02:03'::timestamp],
    ARRAY['2024-01-01 01:02:03+01'::timestamptz], '{sad,ok}', ARRAY[ROW('a', 'b', NULL)::addr, NULL, ROW(NULL, '', '{q}')::addr],
    '{(1,1),(0,0);(2,2),(1,1)}', '{1,2}', '{1 day,-2 hours}' /*15*/, 12300, 0.0012 /*-*/);
INSERT INTO everything (id, em, t, j, by) VALUES (3, 'c@d', '', 'null', decode(repeat('00ff', 9000), 'hex'));
COMMENT ON COLUMN everything.t IS E'text with ''quotes'', a \\ and\na second line';

CREATE TABLE attached (id int, content oid);
INSERT INTO attached VALUES (1, lo_from_bytea(0, 'small')), (2, NULL), (3, lo_from_bytea(0, ''));

-- Names
CREATE TABLE "Odd Name"."T" (
    "Select" int, "a""b" text COLLATE "Odd Name".german, "%s {0}" text COLLATE blind DEFAULT 'a''b\c;--',
    PRIMARY KEY ("Select"));
INSERT INTO "Odd Name"."T" VALUES (1, 'x', DEFAULT), (2, E'\x01\x7f', '');

-- Partitions
CREATE TABLE parted (id int NOT NULL, d date NOT NULL, v text DEFAULT 'none', PRIMARY KEY (id, d)) PARTITION BY RANGE (d);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM ('2021-01-01') TO ('2022-01-01') PARTITION BY LIST (id);
CREATE TABLE "Odd Name".parted_2a PARTITION OF parted_2 FOR VALUES IN (1, 2);
CREATE TABLE parted_d PARTITION OF parted DEFAULT;
CREATE INDEX parted_v ON parted (v);
CREATE INDEX own_of_partition ON parted_1 (lower(v));
ALTER TABLE parted_1 ADD CONSTRAINT not_x CHECK (v <> 'x');
ALTER TABLE parted_1 ALTER COLUMN v SET DEFAULT 'first';
COMMENT ON TABLE parted_1 IS 'the first partition';
INSERT INTO parted VALUES (1, '2020-05-05', 'a'), (1, '2021-05-05', 'b'), (9, '1999-01-01', 'c');
CREATE TABLE hashed (k int) PARTITION BY HASH (k);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (modulus 2, remainder 0);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (modulus 2, remainder 1);
INSERT INTO hashed SELECT generate_series(1, 20);

-- Inheritance
CREATE TABLE animal (id int PRIMARY KEY, name text CHECK (name <> ''), kind text DEFAULT 'any');
CREATE TABLE dog (breed text, UNIQUE (id)) INHERITS (animal);
CREATE TABLE puppy (age int CHECK (age < 2) NO INHERIT) INHERITS (dog);
ALTER TABLE dog ALTER COLUMN kind SET DEFAULT 'dog';
INSERT INTO animal VALUES (1, 'generic');
INSERT INTO dog VALUES (2, 'rex', DEFAULT, 'lab'), (3, 'fido', DEFAULT, NULL);
INSERT INTO puppy VALUES (4, 'tiny', DEFAULT, NULL, 1);
COMMENT ON TABLE animal IS 'animals';

-- Keys of all kinds
CREATE TABLE a (id int PRIMARY KEY, b_id int, self int REFERENCES a);
CREATE TABLE b (id int PRIMARY KEY, a_id int REFERENCES a DEFERRABLE INITIALLY DEFERRED);
ALTER TABLE a ADD CONSTRAINT a_b FOREIGN KEY (b_id) REFERENCES b ON DELETE SET NULL ON UPDATE CASCADE;
COMMENT ON CONSTRAINT a_b ON a IS 'a ring';
INSERT INTO a VALUES (1, NULL, 1); INSERT INTO b VALUES (1, 1); UPDATE a SET b_id = 1;
CREATE TABLE wide (
    x int, y int, z text, span int4range, UNIQUE (x, y), CONSTRAINT later UNIQUE (z) DEFERRABLE,
    CONSTRAINT apart EXCLUDE USING gist (x WITH =, span WITH &&), UNIQUE (y, x) INCLUDE (z));
INSERT INTO wide VALUES (1, 2, 'z', '[1,2)');
CREATE TABLE "Odd Name".pointing (
    px int, py int, odd int REFERENCES "Odd Name"."T" ON DELETE RESTRICT ON UPDATE SET DEFAULT,
    CONSTRAINT full_match FOREIGN KEY (px, py) REFERENCES public.wide (x, y) MATCH FULL ON DELETE CASCADE);
INSERT INTO "Odd Name".pointing VALUES (1, 2, 1), (NULL, NULL, NULL);
CREATE TABLE broken (w int);
INSERT INTO broken VALUES (99), (-1);
ALTER TABLE broken ADD CONSTRAINT promised FOREIGN KEY (w) REFERENCES a NOT VALID;
ALTER TABLE broken ADD CONSTRAINT positive CHECK (w > 0) NOT VALID;

-- Columns that compute
CREATE TABLE gen (
    w int CHECK (twice(w) < 1000), h int, area int GENERATED ALWAYS AS (w * h) STORED, label text CHECK (is_fine(label)),
    id int GENERATED ALWAYS AS IDENTITY (START 100 INCREMENT 5), id2 bigint GENERATED BY DEFAULT AS IDENTITY, at date DEFAULT current_date,
    num int DEFAULT nextval('standalone'));
INSERT INTO gen (w, h) VALUES (2, 3), (4, 5);
COMMENT ON TABLE gen IS E'Generated; ''quotes'' and \\ back';
COMMENT ON COLUMN gen.area IS 'w times h';
CREATE UNIQUE INDEX gen_u ON gen (w, h);
CREATE UNIQUE INDEX gen_part ON gen (id) WHERE w > 0;
CREATE INDEX gen_e ON gen (lower(w::text) DESC NULLS LAST) INCLUDE (h) WITH (fillfactor = 70) WHERE h > 1;
COMMENT ON INDEX gen_e IS 'an index';
ALTER TABLE gen CLUSTER ON gen_u;
ALTER TABLE gen ALTER COLUMN w SET STATISTICS 200;
ALTER TABLE gen ALTER COLUMN label SET STORAGE EXTERNAL;
CREATE STATISTICS st (dependencies) ON w, h FROM gen;
ALTER TABLE gen REPLICA IDENTITY FULL;
CREATE UNLOGGED TABLE unlogged (q int) WITH (fillfactor = 50);
CREATE TABLE empty_one (z int);

-- Views
CREATE VIEW v AS SELECT id, t, b FROM everything WHERE t LIKE '%\_%' OR true;
COMMENT ON VIEW v IS 'a view'; COMMENT ON COLUMN v.t IS 'its text';
CREATE VIEW v2 ("Q", r) WITH (security_barrier) AS SELECT id + 1, row_number() OVER () FROM v;
CREATE VIEW checked AS SELECT w, h FROM gen WHERE w > 0 WITH CASCADED CHECK OPTION;
CREATE MATERIALIZED VIEW mv AS SELECT count(*) AS n FROM everything;
CREATE UNIQUE INDEX mv_n ON mv (n);
COMMENT ON MATERIALIZED VIEW mv IS 'kept';
CREATE MATERIALIZED VIEW mv_empty AS SELECT 1 AS one WITH NO DATA;

-- Routines
CREATE FUNCTION add(a int, b int DEFAULT 5) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT a + b';
CREATE FUNCTION add(a text, VARIADIC b text[]) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN a || b[1]; END; $$;
CREATE FUNCTION of_rows() RETURNS SETOF gen LANGUAGE sql STABLE AS 'SELECT * FROM public.gen';
CREATE FUNCTION as_table(OUT x int, OUT y text) RETURNS SETOF record LANGUAGE sql AS $$ SELECT 1, 'a;b' $$;
/*14*/ CREATE FUNCTION atomic(i int) RETURNS int LANGUAGE sql BEGIN ATOMIC; SELECT i + 1; END; /*-*/
CREATE PROCEDURE p(INOUT x int) LANGUAGE plpgsql AS $$ BEGIN x := x + 1; COMMIT; END $$;
CREATE AGGREGATE mysum(int) (sfunc = int4pl, stype = int, initcond = '0');
COMMENT ON FUNCTION add(int, int) IS 'adds';
COMMENT ON AGGREGATE mysum(int) IS 'sums';
CREATE FUNCTION trg() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN new; END $$;

-- Triggers, rules, security
CREATE TRIGGER tr BEFORE INSERT OR UPDATE OF w ON gen FOR EACH ROW WHEN (new.w > 0) EXECUTE FUNCTION trg('x');
CREATE TRIGGER tr_stmt AFTER INSERT ON gen REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION trg();
CREATE CONSTRAINT TRIGGER tr_late AFTER UPDATE ON gen DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION trg();
ALTER TABLE gen DISABLE TRIGGER tr_stmt;
COMMENT ON TRIGGER tr ON gen IS 'a trigger';
CREATE TRIGGER tr_view INSTEAD OF INSERT ON v FOR EACH ROW EXECUTE FUNCTION trg();
CREATE TRIGGER tr_parted BEFORE INSERT ON parted FOR EACH ROW EXECUTE FUNCTION trg();
CREATE RULE ru AS ON DELETE TO b DO INSTEAD NOTHING;
CREATE RULE ru2 AS ON UPDATE TO v2 DO INSTEAD UPDATE gen SET h = 1 WHERE w = old.r;
ALTER TABLE gen ENABLE ROW LEVEL SECURITY;
CREATE POLICY pol ON gen AS RESTRICTIVE FOR SELECT TO PUBLIC USING (w > 1);
COMMENT ON POLICY pol ON gen IS 'a policy';
GRANT SELECT ON gen TO PUBLIC;
GRANT EXECUTE ON FUNCTION add(int, int) TO PUBLIC;
