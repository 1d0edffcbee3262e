-- Tables that inherit from others, and partitions, with all that they have otherwise than their parents. What stands between
-- /*16*/ and /*-*/ is not in earlier versions, what stands between /*<18*/ and /*-*/ not in later ones.

-- Heirs that differ from their parents
CREATE TABLE parent (a int DEFAULT 1 CHECK (a > 0), b int NOT NULL, v int GENERATED ALWAYS AS (a * 2) STORED, CONSTRAINT alone CHECK (a < 99) NO INHERIT);
CREATE TABLE uncle (a int, b int);
CREATE TABLE heir () INHERITS (parent);
CREATE TABLE heir_of_both (a int DEFAULT 7) INHERITS (parent, uncle);
CREATE TABLE heir_set (CONSTRAINT not_five CHECK (a <> 5)) INHERITS (parent);
ALTER TABLE heir_set ALTER a SET DEFAULT 4, ALTER a SET NOT NULL, ALTER a SET STATISTICS 3;
CREATE TABLE keyed (id int PRIMARY KEY);
CREATE TABLE keyed_heir () INHERITS (keyed);
CREATE TABLE keyed_again (PRIMARY KEY (id)) INHERITS (keyed);
/*16*/ CREATE TABLE heir_computes (v int GENERATED ALWAYS AS (a * 3) STORED) INHERITS (parent); INSERT INTO heir_computes VALUES (4, 4); /*-*/
/*17*/ ALTER TABLE heir ALTER v SET EXPRESSION AS (a * 9); /*-*/
INSERT INTO parent VALUES (1, 1); INSERT INTO heir VALUES (2, 2); INSERT INTO heir_set VALUES (3, 3);

-- From parents that have a parent in common
CREATE TABLE top (a int NOT NULL, b text DEFAULT 'x' NOT NULL, CHECK (a > 0));
CREATE TABLE left_side (x int NOT NULL) INHERITS (top);
CREATE TABLE right_side (y int, CHECK (y > 1)) INHERITS (top);
CREATE TABLE bottom (z int) INHERITS (left_side, right_side); ALTER TABLE bottom ALTER y SET NOT NULL;
INSERT INTO bottom VALUES (1, 'b', 2, 3, 4); INSERT INTO top VALUES (9);

-- Heirs that were tables of their own, and those that are so again
CREATE TABLE joined_to (a int NOT NULL, b int);
CREATE TABLE joined (a int NOT NULL, b int NOT NULL, c text); ALTER TABLE joined INHERIT joined_to;
CREATE TABLE left_again () INHERITS (joined_to); ALTER TABLE left_again NO INHERIT joined_to;
ALTER TABLE joined_to ADD CONSTRAINT small CHECK (a < 100) NOT VALID; ALTER TABLE joined VALIDATE CONSTRAINT small;

-- Defaults, checks and NOT NULL that only one of both has
CREATE TABLE usual (a int DEFAULT 1, b int DEFAULT 2, c int CONSTRAINT in_both CHECK (c > 0));
CREATE TABLE unusual (a int, c int CONSTRAINT in_both CHECK (c > 0)) INHERITS (usual);
ALTER TABLE unusual ALTER a DROP DEFAULT, ALTER b DROP DEFAULT;
ALTER TABLE ONLY usual ALTER c SET DEFAULT 3;
/*<18*/
CREATE TABLE keyed_strict (id int PRIMARY KEY); CREATE TABLE keyed_lax () INHERITS (keyed_strict); ALTER TABLE keyed_lax ALTER id DROP NOT NULL;
CREATE TABLE strict (a int); CREATE TABLE lax () INHERITS (strict); CREATE TABLE lax_too (a int) INHERITS (strict);
INSERT INTO strict VALUES (1); INSERT INTO lax VALUES (NULL); INSERT INTO lax_too VALUES (NULL); ALTER TABLE ONLY strict ALTER a SET NOT NULL;
/*-*/

-- Partitions: attached with other columns first, with defaults, keys, options and names of their own, referred to by themselves
CREATE TABLE p (a int NOT NULL, b text COLLATE "C" DEFAULT 'd', c int CHECK (c > 0), PRIMARY KEY (a)) PARTITION BY RANGE (a);
CREATE TABLE p1 (c int CHECK (c > 0), a int NOT NULL, b text COLLATE "C", CONSTRAINT p_c_check CHECK (c > 0), PRIMARY KEY (a));
ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (1) TO (10);
CREATE TABLE p2 PARTITION OF p (b DEFAULT 'own' NOT NULL, CONSTRAINT extra UNIQUE (b)) FOR VALUES FROM (10) TO (20) WITH (fillfactor = 50);
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (20) TO (30); ALTER TABLE p DETACH PARTITION p3;
ALTER TABLE p2 ALTER c SET NOT NULL;
CREATE INDEX p_hash ON p USING hash (b); ALTER INDEX p1_b_idx RENAME TO "renamed index"; COMMENT ON INDEX "renamed index" IS 'renamed';
INSERT INTO p VALUES (1, 'x', 1), (11, 'y', 2);
CREATE TABLE refers_to (x int REFERENCES p, y int CONSTRAINT to_a_partition REFERENCES p2 (a)); INSERT INTO refers_to VALUES (1, 11); COMMENT ON CONSTRAINT to_a_partition ON refers_to IS 'to one of them';
CREATE TABLE refers_parted (x int REFERENCES p ON DELETE SET NULL) PARTITION BY LIST (x); CREATE TABLE refers_parted_1 PARTITION OF refers_parted FOR VALUES IN (1, 2);
CREATE TABLE to_itself (id int PRIMARY KEY, up int REFERENCES to_itself) PARTITION BY LIST (id); CREATE TABLE to_itself_1 PARTITION OF to_itself DEFAULT; INSERT INTO to_itself VALUES (1, 1);
CREATE TYPE pair AS (x int, y text); CREATE TABLE pairs OF pair (x NOT NULL, y DEFAULT 'q', PRIMARY KEY (x));

-- Tables and columns with new names, whose constraints keep the old ones
CREATE TABLE old (a int NOT NULL PRIMARY KEY, b int NOT NULL); ALTER TABLE old RENAME TO new; ALTER TABLE new RENAME b TO c; CREATE TABLE old (a int NOT NULL);
CREATE TABLE alike (LIKE new INCLUDING ALL, d int);

/*18*/
-- NOT NULL and checks that hold for some, for nobody yet, or are proved for some
CREATE TABLE parted (a int, b int, c int) PARTITION BY LIST (a); CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1); CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
INSERT INTO parted VALUES (1, NULL, 1), (2, 2, NULL); ALTER TABLE parted ADD CONSTRAINT b_later NOT NULL b NOT VALID; ALTER TABLE parted_2 VALIDATE CONSTRAINT b_later;
CREATE TABLE parted_3 (c int, b int, a int); INSERT INTO parted_3 VALUES (1, NULL, 3); ALTER TABLE parted_3 ADD CONSTRAINT b_other NOT NULL b NOT VALID; ALTER TABLE parted ATTACH PARTITION parted_3 FOR VALUES IN (3);
ALTER TABLE parted ADD CONSTRAINT c_later CHECK (c > 1) NOT VALID;
CREATE TABLE proved (a int, b int); CREATE TABLE proved_heir () INHERITS (proved); INSERT INTO proved VALUES (1, NULL); ALTER TABLE proved ADD CONSTRAINT b_later NOT NULL b NOT VALID;
ALTER TABLE proved_heir VALIDATE CONSTRAINT b_later; CREATE TABLE proved_heir_too () INHERITS (proved_heir); INSERT INTO proved_heir VALUES (3, 3);
CREATE TABLE unproved (a int); CREATE TABLE unproved_heir () INHERITS (unproved); INSERT INTO unproved VALUES (NULL); INSERT INTO unproved_heir VALUES (NULL);
ALTER TABLE unproved ADD CONSTRAINT a_later NOT NULL a NOT VALID; COMMENT ON CONSTRAINT a_later ON unproved_heir IS 'inherited';
CREATE TABLE own_only (a int CONSTRAINT alone_too NOT NULL NO INHERIT); CREATE TABLE own_only_heir () INHERITS (own_only); INSERT INTO own_only_heir VALUES (NULL);
CREATE TABLE own_only_too (CONSTRAINT alone_as_well NOT NULL a NO INHERIT) INHERITS (own_only);
CREATE TABLE unenforced (a int CONSTRAINT told CHECK (a > 0) NOT ENFORCED); CREATE TABLE enforced (a int CONSTRAINT told CHECK (a > 0) ENFORCED) INHERITS (unenforced);
CREATE TABLE unenforced_too () INHERITS (unenforced); INSERT INTO unenforced_too VALUES (-4);
CREATE TABLE named_pairs OF pair (x CONSTRAINT x_named NOT NULL, CONSTRAINT y_named NOT NULL y);
CREATE TABLE key_named (a int CONSTRAINT a_named NOT NULL, b int, CONSTRAINT key_of_two PRIMARY KEY (a, b)); CREATE TABLE key_heir () INHERITS (key_named); CREATE TABLE key_heir_own (PRIMARY KEY (a)) INHERITS (key_named);
CREATE TABLE seen (k int, a int, b int GENERATED ALWAYS AS (a + 1) VIRTUAL) PARTITION BY LIST (k); CREATE TABLE seen_1 PARTITION OF seen FOR VALUES IN (1); ALTER TABLE seen_1 ALTER b SET NOT NULL; INSERT INTO seen (k, a) VALUES (1, 1);
CREATE TABLE timed (id int4range, at daterange); CREATE TABLE timed_heir (CONSTRAINT timed_key PRIMARY KEY (id, at WITHOUT OVERLAPS)) INHERITS (timed);
CREATE TABLE timed_parts (id int4range, k int, at daterange) PARTITION BY LIST (k); CREATE TABLE timed_part PARTITION OF timed_parts FOR VALUES IN (1); ALTER TABLE timed_part ADD CONSTRAINT of_its_own UNIQUE (id, at WITHOUT OVERLAPS);
/*-*/
