"""PostgreSQL's catalogue: one query per kind of object, each asked once for the whole database.

With an empty search path, every name in a definition that the server prints carries its schema.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from muniment.databases.postgresql.connection import Connection, rows

__all__ = ["NO_MEMBER", "OWN", "Catalogue", "Row"]

Row = dict[str, Any]

OWN = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"
NO_MEMBER = (
    "NOT EXISTS (SELECT 1 FROM pg_depend e WHERE e.classid = '{0}'::regclass AND e.objid = {1}.oid"
    " AND e.deptype = 'e')"
)

_SCHEMAS = f"""
SELECT n.oid, n.nspname AS name, obj_description(n.oid, 'pg_namespace') AS comment,
    has_schema_privilege(n.oid, 'USAGE') AS usable
FROM pg_namespace n WHERE {OWN} AND {NO_MEMBER.format("pg_namespace", "n")}
ORDER BY n.nspname <> 'public', n.nspname
"""

_RELATIONS = f"""
SELECT c.oid, n.nspname AS schema, c.relname AS name, c.relkind AS kind, c.relpersistence,
    c.relispartition, c.reltuples, c.relrowsecurity, c.relforcerowsecurity, c.relreplident,
    c.reloptions, c.relispopulated, c.reltype, a.amname AS method,
    obj_description(c.oid, 'pg_class') AS comment,
    CASE WHEN c.reloftype <> 0 THEN format_type(c.reloftype, NULL) END AS of_type,
    has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AS readable,
    has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT') AS partly,
    CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END AS query,
    CASE WHEN c.relkind = 'p' THEN pg_get_partkeydef(c.oid) END AS partition_key,
    CASE WHEN c.relispartition THEN pg_get_expr(c.relpartbound, c.oid) END AS bound,
    s.srvname AS server, p.spcname AS tablespace,
    (SELECT t.reloptions FROM pg_class t WHERE t.oid = c.reltoastrelid) AS toast_options
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_am a ON a.oid = c.relam
LEFT JOIN pg_foreign_table f ON f.ftrelid = c.oid
LEFT JOIN pg_foreign_server s ON s.oid = f.ftserver
LEFT JOIN pg_tablespace p ON p.oid = c.reltablespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't' AND {OWN}
    AND {NO_MEMBER.format("pg_class", "c")}
ORDER BY lower(c.relname), c.relname, c.oid
"""

_SIZES = """
SELECT c.oid, CASE WHEN c.relkind IN ('r', 'm') THEN pg_relation_size(c.oid) ELSE 0 END AS heap,
    CASE WHEN c.reltoastrelid <> 0 THEN pg_relation_size(c.reltoastrelid) ELSE 0 END AS toast
FROM pg_class c WHERE c.oid = ANY (%s)
"""

# Since version 18 NOT NULL is a constraint with a name, which rows may break until it is validated.
_COLUMNS = """
SELECT a.attrelid, a.attnum AS number, a.attname AS name, a.atttypid AS type_id,
    a.atttypmod AS modifier, format_type(a.atttypid, a.atttypmod) AS type,
    a.attnotnull AND COALESCE(o.convalidated, true) AS attnotnull, o.conname AS null_name,
    o.conislocal AS null_local, o.connoinherit AS null_alone,
    pg_get_expr(d.adbin, d.adrelid) AS expression, a.attidentity, a.attgenerated, a.attislocal,
    a.attinhcount, a.attoptions, a.attstattarget, a.attstorage,
    t.typstorage, {compression} AS compression, col_description(a.attrelid, a.attnum) AS comment,
    CASE WHEN a.attcollation <> t.typcollation THEN quote_ident(cn.nspname) || '.'
        || quote_ident(co.collname) END AS collation,
    has_column_privilege(a.attrelid, a.attnum, 'SELECT') AS readable
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg_constraint o ON o.conrelid = a.attrelid AND o.contype = 'n'
    AND o.conkey = ARRAY[a.attnum]
LEFT JOIN pg_collation co ON co.oid = a.attcollation
LEFT JOIN pg_namespace cn ON cn.oid = co.collnamespace
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'c')
    AND {own}
ORDER BY a.attrelid, a.attnum
"""

_INHERITS = f"""
SELECT i.inhrelid AS child, i.inhparent AS parent, pn.nspname AS schema, p.relname AS name
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_class p ON p.oid = i.inhparent
JOIN pg_namespace pn ON pn.oid = p.relnamespace
WHERE c.relkind IN ('r', 'p', 'f') AND {OWN} ORDER BY i.inhrelid, i.inhseqno
"""

_CONSTRAINTS = f"""
SELECT o.oid, o.conrelid, o.contypid, o.conname AS name, o.contype AS kind, o.condeferrable,
    o.condeferred, o.convalidated, o.conislocal, o.coninhcount, o.connoinherit, o.conparentid,
    o.conindid, o.confmatchtype, o.confupdtype, o.confdeltype,
    pg_get_constraintdef(o.oid) AS definition, pg_get_expr(o.conbin, o.conrelid) AS condition,
    obj_description(o.oid, 'pg_constraint') AS comment,
    fn.nspname AS referenced_schema, f.relname AS referenced_table,
    COALESCE(f.relispartition, false) AS to_partition,  -- which is no table in an archive
    ARRAY(SELECT a.attname::text FROM unnest(o.conkey) WITH ORDINALITY k(n, i)
        JOIN pg_attribute a ON a.attrelid = o.conrelid AND a.attnum = k.n ORDER BY k.i) AS columns,
    ARRAY(SELECT a.attname::text FROM unnest(o.confkey) WITH ORDINALITY k(n, i)
        JOIN pg_attribute a ON a.attrelid = o.confrelid AND a.attnum = k.n ORDER BY k.i)
        AS referenced
FROM pg_constraint o JOIN pg_namespace n ON n.oid = o.connamespace
LEFT JOIN pg_class f ON f.oid = o.confrelid LEFT JOIN pg_namespace fn ON fn.oid = f.relnamespace
WHERE {OWN} ORDER BY o.conrelid, o.contype, o.conname, o.oid
"""

_INDEXES = f"""
SELECT i.indexrelid AS oid, i.indrelid, c.relname AS name, pg_get_indexdef(c.oid) AS definition,
    i.indisunique, i.indisclustered, i.indisreplident, i.indisvalid,
    obj_description(c.oid, 'pg_class') AS comment,
    i.indpred IS NULL AND i.indexprs IS NULL AS plain,
    (SELECT array_agg(pg_get_indexdef(c.oid, k, true)::text ORDER BY k)
        FROM generate_series(1, i.indnkeyatts) k) AS keys,
    ARRAY(SELECT a.attname::text FROM unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY k(n, p)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.n ORDER BY k.p) AS columns,
    o.oid AS constraint_oid, c.reloptions AS options,
    ARRAY(SELECT ARRAY[a.attnum, a.attstattarget]::int[] FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attstattarget >= 0 ORDER BY a.attnum) AS targets,
    (SELECT quote_ident(pn.nspname) || '.' || quote_ident(p.relname)
        FROM pg_inherits h JOIN pg_class p ON p.oid = h.inhparent
        JOIN pg_namespace pn ON pn.oid = p.relnamespace WHERE h.inhrelid = c.oid) AS attached
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
JOIN pg_namespace n ON n.oid = t.relnamespace
LEFT JOIN pg_constraint o ON o.conindid = i.indexrelid AND o.contype IN ('p', 'u', 'x')
WHERE {OWN} AND t.relkind IN ('r', 'p', 'm') ORDER BY i.indrelid, c.relname
"""

_TRIGGERS = f"""
SELECT t.oid, t.tgrelid, t.tgname AS name, t.tgtype AS bits, t.tgenabled AS enabled,
    pg_get_triggerdef(t.oid) AS definition, obj_description(t.oid, 'pg_trigger') AS comment,
    t.tgoldtable AS old_table, t.tgnewtable AS new_table
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE NOT t.tgisinternal AND t.tgparentid = 0 AND {OWN} ORDER BY t.tgrelid, t.tgname
"""

# Triggers of partitions are copies of their parent's, up to version 14 internal ones; only what was
# changed on one has to be said.
_CLONES = f"""
SELECT t.tgrelid, t.tgname AS name, t.tgenabled AS enabled, p.tgenabled <> t.tgenabled AS changed,
    obj_description(t.oid, 'pg_trigger') AS comment
FROM pg_trigger t JOIN pg_trigger p ON p.oid = t.tgparentid AND (p.tgenabled <> t.tgenabled
    OR obj_description(t.oid, 'pg_trigger') IS NOT NULL)
JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE (NOT t.tgisinternal OR t.tgconstraint = 0) AND {OWN} ORDER BY t.tgrelid, t.tgname
"""

_RULES = f"""
SELECT r.ev_class, r.rulename AS name, pg_get_ruledef(r.oid) AS definition, r.ev_enabled AS enabled,
    obj_description(r.oid, 'pg_rewrite') AS comment
FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE r.rulename <> '_RETURN' AND {OWN} ORDER BY r.ev_class, r.rulename
"""

_POLICIES = f"""
SELECT p.polrelid, p.polname AS name, p.polcmd AS command, p.polpermissive AS permissive,
    pg_get_expr(p.polqual, p.polrelid) AS using, pg_get_expr(p.polwithcheck, p.polrelid) AS checks,
    ARRAY(SELECT CASE WHEN r = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(r)) END
        FROM unnest(p.polroles) r) AS roles, obj_description(p.oid, 'pg_policy') AS comment
FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE {OWN} ORDER BY p.polrelid, p.polname
"""

_STATISTICS = f"""
SELECT s.stxrelid, s.stxname AS name, n.nspname AS schema,
    pg_get_statisticsobjdef(s.oid) AS definition, s.stxstattarget AS target,
    obj_description(s.oid, 'pg_statistic_ext') AS comment
FROM pg_statistic_ext s JOIN pg_class c ON c.oid = s.stxrelid
JOIN pg_namespace n ON n.oid = s.stxnamespace WHERE {OWN} ORDER BY s.stxrelid, s.stxname
"""

_TYPES = """
SELECT t.oid, n.nspname AS schema, t.typname AS name, t.typtype AS kind, t.typrelid, t.typnotnull,
    format_type(t.oid, NULL) AS spelt,
    COALESCE(pg_get_expr(t.typdefaultbin, 0), quote_literal(t.typdefault)) AS typdefault,
    t.typbasetype, t.typtypmod, format_type(NULLIF(t.typbasetype, 0), t.typtypmod) AS base,
    t.typndims, CASE WHEN e.typarray = t.oid THEN t.typelem ELSE 0 END AS element,
    c.relkind, obj_description(t.oid, 'pg_type') AS comment,
    CASE WHEN t.typtype = 'd' AND t.typcollation <> b.typcollation
        THEN quote_ident(cn.nspname) || '.' || quote_ident(co.collname) END AS collation,
    ARRAY(SELECT l.enumlabel::text FROM pg_enum l WHERE l.enumtypid = t.oid
        ORDER BY l.enumsortorder) AS labels,
    n.nspname ~ '^pg_' OR n.nspname = 'information_schema' OR EXISTS (SELECT 1 FROM pg_depend x
        WHERE x.classid = 'pg_type'::regclass AND x.objid = t.oid AND x.deptype = 'e') AS foreign
FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
LEFT JOIN pg_type e ON e.oid = t.typelem AND e.typarray = t.oid
LEFT JOIN pg_type b ON b.oid = t.typbasetype
LEFT JOIN pg_class c ON c.oid = t.typrelid
LEFT JOIN pg_collation co ON co.oid = t.typcollation
LEFT JOIN pg_namespace cn ON cn.oid = co.collnamespace
ORDER BY t.typname, t.oid
"""

_RANGES = f"""
SELECT r.rngtypid, format_type(r.rngsubtype, NULL) AS subtype, on_.nspname AS class_schema,
    oc.opcname AS class_name, oc.opcdefault, cn.nspname AS collation_schema,
    co.collname AS collation, ct.typcollation AS own_collation, r.rngcollation,
    NULLIF(r.rngsubdiff::oid, 0)::regproc::text AS difference,
    {{multirange}} AS multirange
FROM pg_range r JOIN pg_type t ON t.oid = r.rngtypid JOIN pg_namespace n ON n.oid = t.typnamespace
JOIN pg_type ct ON ct.oid = r.rngsubtype JOIN pg_opclass oc ON oc.oid = r.rngsubopc
JOIN pg_namespace on_ ON on_.oid = oc.opcnamespace
LEFT JOIN pg_collation co ON co.oid = r.rngcollation
LEFT JOIN pg_namespace cn ON cn.oid = co.collnamespace WHERE {OWN}
"""

_SEQUENCES = f"""
SELECT c.oid, n.nspname AS schema, c.relname AS name, s.seqstart AS start, s.seqincrement AS step,
    s.seqmin AS least, s.seqmax AS most, s.seqcache AS cache, s.seqcycle AS cycle,
    format_type(s.seqtypid, NULL) AS type, c.relpersistence,
    obj_description(c.oid, 'pg_class') AS comment, d.refobjid AS owner,
    d.deptype AS ownership, a.attname AS owner_column,
    has_schema_privilege(n.oid, 'USAGE') AND has_sequence_privilege(c.oid, 'SELECT') AS readable
FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid
    AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i') AND d.refobjsubid > 0
LEFT JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
WHERE {OWN} AND c.relpersistence <> 't' AND {NO_MEMBER.format("pg_class", "c")}
ORDER BY n.nspname, c.relname
"""

_ROUTINES = f"""
SELECT p.oid, n.nspname AS schema, p.proname AS name, p.prokind AS kind, p.prosrc AS body,
    l.lanname AS language, obj_description(p.oid, 'pg_proc') AS comment,
    CASE WHEN p.prokind <> 'a' THEN pg_get_functiondef(p.oid) END AS definition,
    pg_get_function_result(p.oid) AS result, pg_get_function_identity_arguments(p.oid) AS identity,
    p.provolatile, p.proisstrict, p.prosecdef, p.proretset, p.proargnames AS names,
    p.proargmodes::text[] AS modes, COALESCE(p.proallargtypes, p.proargtypes::oid[]) AS types
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
WHERE {OWN} AND {NO_MEMBER.format("pg_proc", "p")}
    AND NOT EXISTS (SELECT 1 FROM pg_depend i WHERE i.classid = 'pg_proc'::regclass
        AND i.objid = p.oid AND i.deptype = 'i')
ORDER BY n.nspname, p.proname, identity
"""

_AGGREGATES = f"""
SELECT p.oid, a.aggfnoid::regprocedure::text AS signature, a.aggkind, a.aggtransfn::text AS sfunc,
    format_type(a.aggtranstype, NULL) AS stype, a.aggtransspace AS sspace,
    NULLIF(a.aggfinalfn::oid, 0)::regproc::text AS finalfunc, a.aggfinalextra,
    NULLIF(a.aggcombinefn::oid, 0)::regproc::text AS combinefunc,
    NULLIF(a.aggserialfn::oid, 0)::regproc::text AS serialfunc,
    NULLIF(a.aggdeserialfn::oid, 0)::regproc::text AS deserialfunc, a.agginitval,
    NULLIF(a.aggmtransfn::oid, 0)::regproc::text AS msfunc,
    NULLIF(a.aggminvtransfn::oid, 0)::regproc::text AS minvfunc,
    format_type(NULLIF(a.aggmtranstype, 0), NULL) AS mstype,
    NULLIF(a.aggmfinalfn::oid, 0)::regproc::text AS mfinalfunc, a.aggminitval, p.proparallel,
    a.aggmtransspace AS msspace, a.aggmfinalextra, a.aggfinalmodify, a.aggmfinalmodify,
    NULLIF(a.aggsortop, 0)::regoperator::text AS sortop,
    pg_get_function_arguments(p.oid) AS arguments
FROM pg_aggregate a JOIN pg_proc p ON p.oid = a.aggfnoid
JOIN pg_namespace n ON n.oid = p.pronamespace WHERE {OWN}
"""

# What everybody may do with new routines and types, and in the schema of a new database (up to
# version 14 create as well), and may not do here.
_CLOSED = f"""
SELECT n.nspname AS schema, 'EXECUTE ON ' || CASE p.prokind WHEN 'p' THEN 'PROCEDURE ' ELSE
    'FUNCTION ' END || quote_ident(n.nspname) || '.' || quote_ident(p.proname) || '('
    || pg_get_function_identity_arguments(p.oid) || ')' AS "right"
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE p.proacl IS NOT NULL AND {OWN} AND {NO_MEMBER.format("pg_proc", "p")}
    AND NOT EXISTS (SELECT 1 FROM aclexplode(p.proacl) x WHERE x.grantee = 0)
UNION ALL
SELECT n.nspname, 'USAGE ON TYPE ' || format_type(t.oid, NULL)
FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE t.typacl IS NOT NULL AND {OWN} AND {NO_MEMBER.format("pg_type", "t")}
    AND NOT EXISTS (SELECT 1 FROM aclexplode(t.typacl) x WHERE x.grantee = 0)
UNION ALL
SELECT n.nspname, r.name || ' ON SCHEMA public'
FROM pg_namespace n, unnest(ARRAY['CREATE', 'USAGE']) r (name)
WHERE n.nspname = 'public'
    AND (r.name = 'USAGE' OR current_setting('server_version_num')::int < 150000)
    AND NOT EXISTS (SELECT 1 FROM aclexplode(COALESCE(n.nspacl, acldefault('n', n.nspowner))) x
        WHERE x.grantee = 0 AND x.privilege_type = r.name)
ORDER BY 1, 2
"""

_EXTENSIONS = """
SELECT e.extname AS name, n.nspname AS schema, obj_description(e.oid, 'pg_extension') AS comment,
    a.comment AS usual
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
LEFT JOIN pg_available_extensions a ON a.name = e.extname
WHERE e.extname <> 'plpgsql' ORDER BY e.oid
"""

_COLLATIONS = f"""
SELECT n.nspname AS schema, c.collname AS name, to_jsonb(c) AS facts,
    obj_description(c.oid, 'pg_collation') AS comment
FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace
WHERE {OWN} AND {NO_MEMBER.format("pg_collation", "c")} ORDER BY n.nspname, c.collname
"""

_DICTIONARIES = f"""
SELECT n.nspname AS schema, d.dictname AS name, d.dictinitoption AS options,
    quote_ident(tn.nspname) || '.' || quote_ident(t.tmplname) AS template,
    obj_description(d.oid, 'pg_ts_dict') AS comment
FROM pg_ts_dict d JOIN pg_namespace n ON n.oid = d.dictnamespace
JOIN pg_ts_template t ON t.oid = d.dicttemplate JOIN pg_namespace tn ON tn.oid = t.tmplnamespace
WHERE {OWN} AND {NO_MEMBER.format("pg_ts_dict", "d")} ORDER BY n.nspname, d.dictname
"""

_CONFIGURATIONS = f"""
SELECT n.nspname AS schema, c.cfgname AS name,
    quote_ident(pn.nspname) || '.' || quote_ident(p.prsname) AS parser,
    obj_description(c.oid, 'pg_ts_config') AS comment,
    ARRAY(SELECT k.alias || ' WITH ' || string_agg(m.mapdict::regdictionary::text, ', '
        ORDER BY m.mapseqno) FROM pg_ts_config_map m JOIN ts_token_type(c.cfgparser) k
        ON k.tokid = m.maptokentype WHERE m.mapcfg = c.oid GROUP BY k.tokid, k.alias
        ORDER BY k.tokid) AS mappings
FROM pg_ts_config c JOIN pg_namespace n ON n.oid = c.cfgnamespace
JOIN pg_ts_parser p ON p.oid = c.cfgparser JOIN pg_namespace pn ON pn.oid = p.prsnamespace
WHERE {OWN} AND {NO_MEMBER.format("pg_ts_config", "c")} ORDER BY n.nspname, c.cfgname
"""

# They hold the secrets of other servers, and would begin to copy rows at once.
_SUBSCRIPTIONS = """
SELECT s.subname AS name FROM pg_subscription s JOIN pg_database d ON d.oid = s.subdbid
WHERE d.datname = current_database() ORDER BY 1
"""


class Catalogue:
    """Everything that the catalogue says about the user's own objects."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        version = connection.info.server_version
        compression = "NULLIF(a.attcompression, '')" if version >= 140000 else "NULL"
        multirange = "r.rngmultitypid" if version >= 140000 else "NULL"
        own = OWN
        self.schemas = self._ask(_SCHEMAS)
        self.relations = self._ask(_RELATIONS)
        self.columns = self._by("attrelid", _COLUMNS.format(compression=compression, own=own))
        self.parents = self._by("child", _INHERITS)
        self.constraints = self._by("conrelid", _CONSTRAINTS)
        self.indexes = self._by("indrelid", _INDEXES)
        self.triggers = self._by("tgrelid", _TRIGGERS)
        self.clones = self._by("tgrelid", _CLONES)
        self.rules = self._by("ev_class", _RULES)
        self.policies = self._by("polrelid", _POLICIES)
        self.statistics = self._by("stxrelid", _STATISTICS)
        self.types = {row["oid"]: row for row in self._ask(_TYPES)}
        self.ranges = {
            row["rngtypid"]: row for row in self._ask(_RANGES.format(multirange=multirange))
        }
        self.sequences = self._ask(_SEQUENCES)
        self.routines = self._ask(_ROUTINES)
        self.aggregates = {row["oid"]: row for row in self._ask(_AGGREGATES)}
        self.closed = self._ask(_CLOSED)
        self.extensions = self._ask(_EXTENSIONS)
        self.collations = self._ask(_COLLATIONS)
        self.dictionaries = self._ask(_DICTIONARIES)
        self.configurations = self._ask(_CONFIGURATIONS)
        self.children: dict[int, list[int]] = defaultdict(list)
        for child, links in self.parents.items():
            for link in links:
                self.children[link["parent"]].append(child)
        self.by_oid = {row["oid"]: row for row in self.relations}
        self._mark_not_nulls()

    def _mark_not_nulls(self) -> None:
        """Find each NOT NULL that is the table's alone, as heirs go without it."""
        for parent, children in self.children.items():
            heirs = [c for child in children for c in self.columns[child]]
            loose = {c["name"] for c in heirs if not c["attnotnull"]}
            for column in self.columns[parent]:
                if column["attnotnull"] and column["name"] in loose:
                    column["null_alone"] = column["null_late"] = True

    def _ask(self, sql: str) -> list[Row]:
        return rows(self._connection, sql)

    def _by(self, key: str, sql: str) -> dict[int, list[Row]]:
        found = defaultdict(list)
        for row in self._ask(sql):
            found[row[key]].append(row)
        return found

    def leaves(self, oid: int) -> list[int]:
        """The tables that hold the rows of a table: itself, or its partitions down to the last."""
        if self.by_oid[oid]["kind"] != "p":
            return [oid]
        children = sorted(self.children[oid], key=lambda child: self.by_oid[child]["name"])
        return [leaf for child in children for leaf in self.leaves(child)]

    def descendants(self, oid: int) -> list[int]:
        """The tables that inherit from a table, near ones first."""
        found: list[int] = []
        waiting = list(self.children[oid])
        while waiting:
            child = waiting.pop(0)
            if child not in found:
                found.append(child)
                waiting += self.children[child]
        return found

    def sizes(self, oids: list[int]) -> dict[int, Row]:
        """How many bytes tables take on disk, beside and in their TOAST tables."""
        return {row["oid"]: row for row in rows(self._connection, _SIZES, oids)}

    def subscriptions(self) -> list[str]:
        """The names of what is not archived, as it belongs to other servers."""
        return [row["name"] for row in self._ask(_SUBSCRIPTIONS)]
