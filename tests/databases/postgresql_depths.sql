-- What databases have that are large and old: owners, rights passed on, extensions, partitions with
-- settings of their own, operators, publications. All that pg_dump says of it comes back.
CREATE ROLE depth_alice;
CREATE ROLE "depth Bob";
CREATE ROLE depth_carol;
CREATE EXTENSION hstore; CREATE EXTENSION citext; CREATE EXTENSION ltree; CREATE EXTENSION pg_trgm; CREATE EXTENSION "uuid-ossp"; CREATE EXTENSION tablefunc;
CREATE SCHEMA ext; CREATE EXTENSION btree_gist SCHEMA ext; CREATE EXTENSION cube SCHEMA ext; CREATE EXTENSION isn SCHEMA ext; CREATE EXTENSION intarray; CREATE EXTENSION seg; CREATE EXTENSION postgres_fdw; CREATE EXTENSION file_fdw; CREATE EXTENSION unaccent; CREATE EXTENSION dict_int; CREATE EXTENSION bloom; CREATE EXTENSION lo; CREATE EXTENSION earthdistance SCHEMA ext; CREATE EXTENSION pgcrypto;
COMMENT ON EXTENSION hstore IS 'my own words on hstore';
CREATE SCHEMA app AUTHORIZATION depth_alice; COMMENT ON SCHEMA app IS 'App';
CREATE SCHEMA "Mixed Case";
SET search_path = app, public, ext;
CREATE TABLE exts (id int PRIMARY KEY, h hstore, c citext UNIQUE, l ltree, lq lquery, ltq ltxtquery, cu ext.cube, i ext.isbn13, s seg, la ltree[], ca citext[], ha hstore[], q query_int, e ext.ean13);
INSERT INTO exts VALUES (1, 'a=>1,b=>NULL,"q\"x"=>" sp"', 'Ab', 'a.b.c', 'a.*{1,2}', 'a & b', '(1,2),(3,4)', '978-0-393-04002-9', '1 .. 5', '{a.b,c}', '{Ab,NULL,c}', '{"a=>1"}', '1&2', '9780393040029');
CREATE INDEX ON exts USING gin (h); CREATE INDEX ON exts USING gist (l); CREATE INDEX exts_trgm ON exts USING gin ((c::text) gin_trgm_ops);
CREATE INDEX exts_trgm2 ON exts USING gist ((c::text) gist_trgm_ops(siglen=32));
CREATE INDEX exts_bloom ON exts USING bloom (id) WITH (length=80, col1=2);
CREATE TABLE resv (room int, during tstzrange, EXCLUDE USING gist (room WITH =, during WITH &&) INCLUDE (room) WHERE (room > 0) DEFERRABLE INITIALLY DEFERRED);
-- owners
CREATE TABLE owned (a int PRIMARY KEY, b text, c text); ALTER TABLE owned OWNER TO depth_alice;
CREATE VIEW ownedv AS SELECT a FROM owned; ALTER VIEW ownedv OWNER TO "depth Bob";
CREATE MATERIALIZED VIEW ownedm AS SELECT a FROM owned WITH NO DATA; ALTER MATERIALIZED VIEW ownedm OWNER TO depth_alice;
CREATE SEQUENCE owneds OWNED BY NONE; ALTER SEQUENCE owneds OWNER TO depth_alice;
CREATE FUNCTION ownedf(a int, OUT b int, OUT c text) LANGUAGE sql SECURITY DEFINER AS 'SELECT 1, ''x'''; ALTER FUNCTION ownedf OWNER TO depth_alice;
CREATE TYPE ownedt AS ENUM ('x','y'); ALTER TYPE ownedt OWNER TO depth_alice;
CREATE DOMAIN ownedd AS ownedt[] DEFAULT '{x}' CHECK (cardinality(VALUE) < 3); ALTER DOMAIN ownedd OWNER TO depth_alice;
GRANT SELECT (a, b), UPDATE (b) ON owned TO "depth Bob" WITH GRANT OPTION;
GRANT USAGE ON SCHEMA app TO PUBLIC; SET ROLE "depth Bob"; GRANT SELECT (a) ON app.owned TO depth_carol; RESET ROLE;
GRANT SELECT, INSERT ON owned TO depth_carol; GRANT ALL ON owned TO "depth Bob";
REVOKE INSERT, TRUNCATE ON owned FROM depth_alice;
GRANT USAGE ON SCHEMA app TO PUBLIC; GRANT USAGE, CREATE ON SCHEMA app TO depth_carol WITH GRANT OPTION;
GRANT USAGE ON SEQUENCE owneds TO depth_carol; GRANT USAGE ON TYPE ownedt TO depth_carol; REVOKE USAGE ON TYPE ownedt FROM PUBLIC;
GRANT USAGE ON DOMAIN ownedd TO depth_carol;
REVOKE EXECUTE ON FUNCTION ownedf FROM PUBLIC; GRANT EXECUTE ON FUNCTION ownedf TO depth_carol WITH GRANT OPTION;
GRANT USAGE ON LANGUAGE plpgsql TO depth_carol WITH GRANT OPTION;
GRANT USAGE ON FOREIGN DATA WRAPPER postgres_fdw TO depth_alice;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw; COMMENT ON SERVER files IS 'files of /etc';
GRANT USAGE ON FOREIGN SERVER files TO depth_carol;
CREATE FOREIGN TABLE passwd (name text OPTIONS (force_not_null 'true'), pw text, uid int DEFAULT 3, gid int NOT NULL, gecos text COLLATE "C", home text, shell text, CHECK (uid >= 0)) SERVER files OPTIONS (filename '/etc/passwd', format 'csv', delimiter ':', "null" '');
COMMENT ON FOREIGN TABLE passwd IS 'users'; COMMENT ON COLUMN passwd.uid IS 'number';
ALTER DEFAULT PRIVILEGES FOR ROLE depth_alice IN SCHEMA app GRANT SELECT, INSERT ON TABLES TO depth_carol WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES FOR ROLE depth_alice REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE depth_alice GRANT EXECUTE ON FUNCTIONS TO depth_carol;
ALTER DEFAULT PRIVILEGES FOR ROLE depth_alice GRANT USAGE ON SEQUENCES TO depth_carol;
ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO depth_carol;
ALTER DEFAULT PRIVILEGES FOR ROLE depth_alice REVOKE ALL ON TABLES FROM depth_alice;
-- publications
CREATE TABLE pubt (id int PRIMARY KEY, a text, b text) PARTITION BY RANGE (id);
CREATE TABLE pubt_1 PARTITION OF pubt FOR VALUES FROM (0) TO (10); ALTER TABLE pubt_1 OWNER TO depth_alice; GRANT SELECT ON pubt_1 TO depth_carol;
CREATE TABLE pubt_2 PARTITION OF pubt FOR VALUES FROM (10) TO (20) WITH (fillfactor=50); COMMENT ON COLUMN pubt_2.a IS 'partition column comment';
ALTER TABLE pubt_2 ALTER a SET STORAGE EXTERNAL, ALTER a SET STATISTICS 5, ALTER b SET (n_distinct=3);
ALTER TABLE pubt_2 ADD CONSTRAINT chk_p CHECK (id <> 15) NOT VALID; COMMENT ON CONSTRAINT chk_p ON pubt_2 IS 'pc';
ALTER TABLE pubt_2 ENABLE ROW LEVEL SECURITY; CREATE POLICY pp ON pubt_2 USING (id > 11);
CREATE RULE prule AS ON DELETE TO pubt_2 DO INSTEAD NOTHING;
CREATE STATISTICS pstat ON a, b FROM pubt_2;
ALTER TABLE pubt_2 REPLICA IDENTITY FULL;
/*15*/ CREATE PUBLICATION pub1 FOR TABLE pubt (id, a) WHERE (id > 3), owned WITH (publish='insert, delete', publish_via_partition_root = true); /*-*/
/*15*/ CREATE PUBLICATION pub2 FOR TABLES IN SCHEMA app; /*-*/ CREATE PUBLICATION pub3; COMMENT ON PUBLICATION pub3 IS 'empty';
ALTER PUBLICATION pub3 OWNER TO depth_alice;
-- text search
CREATE TEXT SEARCH DICTIONARY app.ints (TEMPLATE = intdict_template, maxlen = '3', rejectlong = true);
CREATE TEXT SEARCH CONFIGURATION app.conf (COPY = english); ALTER TEXT SEARCH CONFIGURATION app.conf ALTER MAPPING FOR int, uint WITH app.ints; ALTER TEXT SEARCH CONFIGURATION app.conf DROP MAPPING FOR email;
COMMENT ON TEXT SEARCH DICTIONARY app.ints IS 'd'; COMMENT ON TEXT SEARCH CONFIGURATION app.conf IS 'c'; ALTER TEXT SEARCH CONFIGURATION app.conf OWNER TO depth_alice;
-- collations
CREATE COLLATION app.de (provider = icu, locale = 'de-u-co-phonebk', deterministic = false); COMMENT ON COLLATION app.de IS 'german';
CREATE COLLATION "Mixed Case"."C 2" FROM "C";
CREATE TABLE coll (a text COLLATE app.de PRIMARY KEY, b varchar(5) COLLATE "Mixed Case"."C 2" DEFAULT ('x' COLLATE "C"));
INSERT INTO coll VALUES ('ä','b');
-- operator family with loose members, prefix operators, commutators
CREATE FUNCTION neg2(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT -$1'; CREATE OPERATOR !- (RIGHTARG = int, FUNCTION = neg2); COMMENT ON OPERATOR !- (NONE, int) IS 'prefix';
CREATE FUNCTION lt2(a bigint, b int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT a<b'; CREATE FUNCTION gt2(a int, b bigint) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT a>b';
CREATE OPERATOR <# (LEFTARG=bigint, RIGHTARG=int, FUNCTION=lt2, COMMUTATOR = >#, NEGATOR = >=#, RESTRICT=scalarltsel, JOIN=scalarltjoinsel);
CREATE OPERATOR ># (LEFTARG=int, RIGHTARG=bigint, FUNCTION=gt2, COMMUTATOR = <#);
CREATE OPERATOR FAMILY fam USING btree; COMMENT ON OPERATOR FAMILY fam USING btree IS 'f';
CREATE OPERATOR CLASS cls_i FOR TYPE int USING btree FAMILY fam AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int,int);
CREATE OPERATOR CLASS cls_h FOR TYPE int USING hash AS OPERATOR 1 =, FUNCTION 1 hashint4(int), FUNCTION 2 hashint4extended(int, bigint);
ALTER OPERATOR FAMILY fam USING btree ADD OPERATOR 1 <(int,bigint), FUNCTION 1 btint48cmp(int,bigint), FUNCTION 1 (bigint, bigint) btint8cmp(bigint,bigint);
CREATE OPERATOR CLASS gcls FOR TYPE point USING gist AS STORAGE box, OPERATOR 1 <<(point,point), OPERATOR 15 <->(point,point) FOR ORDER BY float_ops, FUNCTION 1 gist_point_consistent(internal,point,smallint,oid,internal), FUNCTION 2 gist_box_union(internal,internal), FUNCTION 3 gist_point_compress(internal), FUNCTION 5 gist_box_penalty(internal,internal,internal), FUNCTION 6 gist_box_picksplit(internal,internal), FUNCTION 7 gist_box_same(box,box,internal), FUNCTION 8 gist_point_distance(internal,point,smallint,oid,internal), FUNCTION 9 gist_point_fetch(internal);
ALTER OPERATOR !- (NONE, int) OWNER TO depth_alice; ALTER OPERATOR FAMILY fam USING btree OWNER TO depth_alice;
CREATE TABLE opx (a int, p point); CREATE INDEX ON opx (a cls_i); CREATE INDEX ON opx USING hash (a cls_h);
CREATE TABLE partop (a int, b text) PARTITION BY RANGE (a cls_i, lower(b) COLLATE "C"); CREATE TABLE partop1 PARTITION OF partop FOR VALUES FROM (1,'a') TO (5,'b');
INSERT INTO partop VALUES (2,'q');
CREATE TABLE parthash (a int4) PARTITION BY HASH (a cls_h);
CREATE FUNCTION ownedcast(ownedt) RETURNS int LANGUAGE sql IMMUTABLE AS $$SELECT 1$$; CREATE CAST (owned AS text) WITH INOUT; CREATE CAST (ownedt AS int) WITH FUNCTION ownedcast(ownedt) AS IMPLICIT; COMMENT ON CAST (ownedt AS int) IS $$c$$; 

SET allow_system_table_mods = on;

-- Types in types, routines of all kinds, partitions of partitions
CREATE SCHEMA z; SET search_path = z;
CREATE FUNCTION from_int(internal) RETURNS internal LANGUAGE internal STRICT IMMUTABLE AS 'int4recv';
CREATE TRANSFORM FOR int LANGUAGE sql (FROM SQL WITH FUNCTION prsd_lextype(internal), TO SQL WITH FUNCTION int4recv(internal)); COMMENT ON TRANSFORM FOR int LANGUAGE sql IS 'tr';
CREATE ACCESS METHOD heap2 TYPE TABLE HANDLER heap_tableam_handler; COMMENT ON ACCESS METHOD heap2 IS 'again';
CREATE TABLE by_heap2 (a int) USING heap2; INSERT INTO by_heap2 VALUES (1);
CREATE LANGUAGE plx HANDLER plpgsql_call_handler INLINE plpgsql_inline_handler VALIDATOR plpgsql_validator; COMMENT ON LANGUAGE plx IS 'pl'; GRANT USAGE ON LANGUAGE plpgsql TO PUBLIC;
CREATE FUNCTION evt() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'no'; END$$;
CREATE TABLE lab (a int, b text); INSERT INTO pg_seclabel VALUES ('z.lab'::regclass, 'pg_class'::regclass, 0, 'dummy', 'secret'), ('z.lab'::regclass, 'pg_class'::regclass, 1, 'dummy', 'x''y');
-- domains over domains over arrays of composite
CREATE TYPE c1 AS (a int, b text); CREATE TYPE c2 AS (x c1, y c1[], z numeric(5,2)); CREATE DOMAIN dc AS c2[] CHECK (cardinality(VALUE) < 9); CREATE DOMAIN dd AS dc NOT NULL DEFAULT '{}';
COMMENT ON TYPE c1 IS 'one'; COMMENT ON COLUMN c1.a IS 'attr'; COMMENT ON DOMAIN dd IS 'dom'; COMMENT ON TYPE c2 IS 'two';
CREATE TABLE tcomp (id int PRIMARY KEY, v c2, vs c2[], d dd, dom dc);
INSERT INTO tcomp VALUES (1, ROW(ROW(1,'a,"b'),ARRAY[ROW(2,NULL)::c1],1.5), ARRAY[ROW(NULL,NULL,NULL)::c2], '{}', NULL), (2, NULL, NULL, ARRAY[ROW(ROW(1,''),'{}',2)::c2], '{}');
-- ranges and multiranges
CREATE FUNCTION fdiff(float8, float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT $1-$2';
/*14*/ CREATE TYPE frange AS RANGE (subtype = float8, subtype_diff = fdiff, multirange_type_name = fmulti); /*-*/
/*14*/ CREATE TABLE trange (a frange, b fmulti, c int8multirange, d datemultirange, e tstzmultirange, f nummultirange, g frange[]); /*-*/
/*14*/ INSERT INTO trange VALUES ('[1.5,Infinity]', '{[1,2),[3,4]}', '{[1,5)}', '{[2020-01-01,infinity)}', '{(,)}', '{}', '{"[1,2]",empty,NULL}'); /*-*/
-- functions
CREATE FUNCTION poly(anycompatible, VARIADIC anycompatiblearray) RETURNS anycompatible LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 3 AS 'SELECT $1';
CREATE FUNCTION sup(text) RETURNS text LANGUAGE sql STABLE SUPPORT pg_catalog.textlike_support AS 'SELECT $1';
CREATE FUNCTION "Quoted Fn"("Arg One" int DEFAULT 1 + 2, b text DEFAULT E'a\'b\\') RETURNS SETOF c1 LANGUAGE sql ROWS 7 SET "search_path" TO z, pg_temp SET "DateStyle" TO 'ISO, DMY' SET my.custom = 'a b' AS $_$ SELECT 1, '$$' $_$;
CREATE PROCEDURE pio(INOUT a int, IN b int DEFAULT 3, VARIADIC c int[] DEFAULT '{}') LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN a := b; END$$;
/*14*/ CREATE FUNCTION sqlbody(a int) RETURNS TABLE (x int, y text) LANGUAGE sql BEGIN ATOMIC SELECT id, (v).z::text FROM z.tcomp WHERE id > a; END; /*-*/
/*14*/ CREATE FUNCTION sqlret(a int) RETURNS int LANGUAGE sql RETURN a + 1; /*-*/
CREATE AGGREGATE sumsq(float8) (sfunc = float8pl, stype = float8, initcond = '0', combinefunc = float8pl, msfunc = float8pl, minvfunc = float8mi, mstype = float8, minitcond='0', sspace=8);
CREATE AGGREGATE hyp(VARIADIC "any" ORDER BY VARIADIC "any") (sfunc = ordered_set_transition_multi, stype = internal, finalfunc = rank_final, finalfunc_extra, hypothetical);
CREATE AGGREGATE cnt(*) (sfunc = int8inc, stype = int8, initcond = '0'); COMMENT ON AGGREGATE cnt(*) IS 'count'; COMMENT ON AGGREGATE hyp(VARIADIC "any" ORDER BY VARIADIC "any") IS 'hyp';
CREATE AGGREGATE srt(int) (sfunc=int4larger, stype=int4, sortop = >);
-- generated, identity, triggers
CREATE TABLE gen (id int GENERATED BY DEFAULT AS IDENTITY (INCREMENT -3 MAXVALUE -1), a numeric, b numeric GENERATED ALWAYS AS (round(a, 1)) STORED, c text DEFAULT current_user, d timestamptz DEFAULT now(), e int DEFAULT abs(-3), CONSTRAINT nn CHECK (a IS NOT NULL) NO INHERIT);
INSERT INTO gen (a) VALUES (1.26), (2);
CREATE FUNCTION trg() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NEW; END$$;
CREATE CONSTRAINT TRIGGER ct AFTER INSERT OR UPDATE OF a ON gen FROM tcomp DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.a > 3 AND NEW.c <> 'it''s') EXECUTE FUNCTION trg('x', E'b\\s', '3');
CREATE TRIGGER tt AFTER INSERT ON gen REFERENCING NEW TABLE AS "New T" FOR EACH STATEMENT EXECUTE FUNCTION trg(); COMMENT ON TRIGGER tt ON gen IS 'tt';
/*15*/ CREATE TABLE nulls (a int, b int, UNIQUE NULLS NOT DISTINCT (a, b)); CREATE UNIQUE INDEX nulls_i ON nulls (a) INCLUDE (b) NULLS NOT DISTINCT WHERE a > 0; /*-*/
CREATE TABLE fks (a int, b int, c int REFERENCES tcomp ON UPDATE CASCADE ON DELETE SET DEFAULT DEFERRABLE, FOREIGN KEY (a) REFERENCES tcomp MATCH FULL NOT VALID);
-- unlogged, options
CREATE UNLOGGED TABLE ul (a serial, b text) WITH (autovacuum_vacuum_scale_factor=0.01, parallel_workers=3, toast_tuple_target=4096, user_catalog_table=true);
/*15*/ CREATE UNLOGGED SEQUENCE uls; /*-*/ ALTER TABLE ul SET UNLOGGED;
/*15*/ ALTER INDEX nulls_i SET (fillfactor=55); /*-*/ CREATE INDEX gexp ON gen ((a+1), lower(c) text_pattern_ops NULLS FIRST); ALTER INDEX gexp ALTER COLUMN 1 SET STATISTICS 77;
-- multi-level inheritance and partitions
CREATE TABLE g0 (a int PRIMARY KEY, t text NOT NULL); CREATE TABLE g1 (b int) INHERITS (g0); CREATE TABLE g2 (c int, t text DEFAULT 'x') INHERITS (g1); ALTER TABLE g2 ADD CHECK (c > 0); ALTER TABLE g1 NO INHERIT g0; ALTER TABLE g1 INHERIT g0;
INSERT INTO g0 VALUES (1,'a'); INSERT INTO g1 VALUES (2,'b',3); INSERT INTO g2 VALUES (3,'c',4,5);
CREATE TABLE pl (k int, v text, d date) PARTITION BY LIST (k);
CREATE TABLE pl_a PARTITION OF pl FOR VALUES IN (1, NULL) PARTITION BY RANGE (d, v); CREATE TABLE pl_a1 PARTITION OF pl_a (v DEFAULT 'dflt', CONSTRAINT q CHECK (v <> '')) FOR VALUES FROM (MINVALUE, MINVALUE) TO ('2020-01-01', MAXVALUE) PARTITION BY HASH (v); CREATE TABLE pl_a1_0 PARTITION OF pl_a1 FOR VALUES WITH (MODULUS 1, REMAINDER 0) TABLESPACE pg_default; CREATE TABLE pl_d PARTITION OF pl DEFAULT;
INSERT INTO pl VALUES (1,'x','2019-01-01'),(NULL,'y','2018-01-01'),(9,'z',NULL);
CREATE INDEX pl_v ON ONLY pl (v); CREATE INDEX pl_d_v ON pl_d (v); ALTER INDEX pl_v ATTACH PARTITION pl_d_v;
ALTER TABLE pl ADD CONSTRAINT plu UNIQUE (k, d, v); COMMENT ON INDEX pl_v IS 'invalid yet'; COMMENT ON CONSTRAINT plu ON pl IS 'u';
CREATE TABLE plref (k int, d date, v text, FOREIGN KEY (k, d, v) REFERENCES pl (k, d, v));
CREATE TRIGGER pt BEFORE INSERT ON pl FOR EACH ROW EXECUTE FUNCTION trg(); ALTER TABLE pl_d ENABLE REPLICA TRIGGER pt; /*15*/ COMMENT ON TRIGGER pt ON pl_d IS 'on partition'; /*-*/
-- views
CREATE VIEW vv (p, q) WITH (security_barrier=false) AS SELECT a, c FROM gen WHERE a > 0 WITH LOCAL CHECK OPTION; CREATE RULE vvr AS ON INSERT TO vv DO INSTEAD INSERT INTO gen (a) VALUES (NEW.p) RETURNING gen.a, gen.c;
CREATE VIEW cyc1 AS SELECT 1 AS a; CREATE VIEW cyc2 AS SELECT a FROM cyc1; CREATE OR REPLACE VIEW cyc1 AS SELECT 2 AS a, 3 AS b; COMMENT ON VIEW cyc2 IS 'c2'; COMMENT ON COLUMN cyc2.a IS 'ca';
CREATE MATERIALIZED VIEW mv1 USING heap2 AS SELECT * FROM gen; CREATE INDEX mvi ON mv1 (a); ALTER TABLE mv1 ALTER c SET STATISTICS 9; COMMENT ON MATERIALIZED VIEW mv1 IS 'mv'; ALTER MATERIALIZED VIEW mv1 CLUSTER ON mvi; 
CREATE MATERIALIZED VIEW mv2 AS SELECT * FROM mv1 WITH NO DATA; CREATE STATISTICS mvs (mcv) ON a, c FROM mv1; GRANT SELECT ON mv1 TO PUBLIC; GRANT SELECT (p) ON vv TO PUBLIC;
CREATE EVENT TRIGGER et2 ON sql_drop EXECUTE FUNCTION evt(); ALTER EVENT TRIGGER et2 DISABLE; COMMENT ON EVENT TRIGGER et2 IS 'off';
CREATE EVENT TRIGGER et3 ON ddl_command_start WHEN TAG IN ('CREATE TABLE', 'DROP TABLE') EXECUTE FUNCTION evt();
