"""Definitions that SIARD has no place for, as statements that bring them back to PostgreSQL.

They stand at the end of descriptions (see ``sql.original``), complete and readable.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from muniment.databases.postgresql.catalogue import Catalogue, Row
from muniment.databases.postgresql.connection import quote, quote_text
from muniment.databases.postgresql.nulls import (
    column_not_null,
    is_usual_not_null,
    late_not_null,
    passed_on,
    table_not_null,
)

__all__ = [
    "aggregate_sql", "collation_sql", "column_sql", "extension_sql", "is_plain_constraint",
    "is_temporal", "own_rows", "search_statements", "sequence_sql", "sequence_state",
    "table_statements", "type_statements", "view_statements",
]  # fmt: skip

_ENABLED = {"D": "DISABLE", "R": "ENABLE REPLICA", "A": "ENABLE ALWAYS"}
_STORAGE = {"p": "PLAIN", "e": "EXTERNAL", "x": "EXTENDED", "m": "MAIN"}
_COMMANDS = {"*": "ALL", "r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE"}
_REPLICA = {"n": "NOTHING", "f": "FULL"}


def table_statements(
    catalogue: Catalogue, row: Row, kept: set[int], untold: set[str]
) -> Iterator[str]:
    """Yield the statements that make a table as it was, but for its keys and checks.

    ``kept`` are the tables in the archive: only from those can it inherit. ``untold`` are the keys
    that are not described otherwise, as rows break them.
    """
    oid, place = row["oid"], quote(row["schema"], row["name"])
    parents = [p for p in catalogue.parents[oid] if p["parent"] in kept]
    ordered = _is_in_order(catalogue, row, parents)
    yield _create_table(catalogue, row, parents if ordered else [])
    for parent in () if ordered else parents:
        yield f"ALTER TABLE {place} INHERIT {quote(parent['schema'], parent['name'])}"
    if row["of_type"]:
        yield f"ALTER TABLE {place} OF {row['of_type']}"
    yield from _partitions(catalogue, oid)
    yield from _inherited_defaults(catalogue, row, place)
    yield from _column_settings(catalogue, row, place)
    yield from filter(None, (late_not_null(place, column) for column in catalogue.columns[oid]))
    late = {c["name"] for c in catalogue.columns[oid] if c.get("null_late")}
    for constraint in catalogue.constraints[oid]:
        if constraint["kind"] not in "pufcxn":  # constraint triggers are triggers
            continue
        proved = constraint["kind"] == "n" and constraint["convalidated"]  # with the columns
        alone = constraint["name"] in untold or constraint["to_partition"]
        # A primary key would otherwise take NULL from heirs as well.
        only = (
            "ONLY "
            if constraint["kind"] == "p" and late.intersection(constraint["columns"])
            else ""
        )
        plain = is_plain_constraint(constraint) and not alone and not only
        if _is_own(constraint) and not proved and not plain:
            name = quote(constraint["name"])
            yield f"ALTER TABLE {only}{place} ADD CONSTRAINT {name} {constraint['definition']}"
        if constraint["comment"] and (alone or constraint["kind"] in "xn"):
            yield _constraint_comment(constraint, place)
    yield from _indexes(catalogue, row, place)
    yield from _trigger_states(catalogue, oid, place)
    yield from _surroundings(catalogue, row, place)


def _surroundings(catalogue: Catalogue, row: Row, place: str) -> Iterator[str]:
    """What a table may have, be it a partition or not."""
    yield from _rules(catalogue, row["oid"], "TABLE", place)
    yield from _security(catalogue, row, place)
    yield from _statistics(catalogue, row["oid"])
    if row["relreplident"] in _REPLICA and row["kind"] != "f":
        yield f"ALTER TABLE {place} REPLICA IDENTITY {_REPLICA[row['relreplident']]}"


def _constraint_comment(constraint: Row, place: str) -> str:
    name, text = quote(constraint["name"]), quote_text(constraint["comment"])
    return f"COMMENT ON CONSTRAINT {name} ON {place} IS {text}"


def own_rows(count: int) -> str:
    """The line that says how many of a table's rows are not those of tables that inherit."""
    return f"-- rows of its own: {count}"


def _is_own(constraint: Row) -> bool:
    return bool(constraint["conislocal"]) and not constraint["conparentid"]


def is_plain_constraint(constraint: Row) -> bool:
    """Whether SIARD says everything about a key or check."""
    if constraint["condeferrable"] or not constraint["convalidated"]:
        return False
    definition = constraint["definition"]
    if is_temporal(constraint):
        return False
    if constraint["kind"] == "c":  # of the table's own, and of its parents, are two things to say
        return not constraint["connoinherit"] and not constraint["coninhcount"]
    if constraint["kind"] in "pu":
        return "INCLUDE" not in definition and "NULLS NOT DISTINCT" not in definition
    return constraint["kind"] == "f" and not re.search(r"SET (NULL|DEFAULT) \(", definition)


def is_temporal(constraint: Row) -> bool:
    """Whether a key holds for a time, and values that overlap count as the same."""
    found = re.search(r"\bWITHOUT OVERLAPS\)|\bPERIOD ", constraint["definition"])
    return constraint["kind"] in "puf" and found is not None


def _is_in_order(catalogue: Catalogue, row: Row, parents: list[Row]) -> bool:
    """Whether a table's columns follow those of its parents, as if it had been made from them."""
    names = [c["name"] for c in catalogue.columns[row["oid"]]]
    above = [c["name"] for c in _columns_of(catalogue, parents)]
    return names == list(dict.fromkeys([*above, *names]))


def _create_table(catalogue: Catalogue, row: Row, parents: list[Row]) -> str:
    unlogged = "UNLOGGED " if row["relpersistence"] == "u" else ""
    above = list(_columns_of(catalogue, parents))
    inherited = passed_on(above)
    defaults = {c["name"] for c in above if c["expression"] and not c["attgenerated"]}
    lines = []
    for column in catalogue.columns[row["oid"]]:
        if column["attislocal"] or not parents:
            bare = column["name"] in defaults and not (
                column["expression"] or column["attidentity"]
            )
            sql = column_sql(column) + (" DEFAULT NULL" if bare else "")
            lines.append(f"    {sql}{column_not_null(row, column, inherited)}")
        elif clause := table_not_null(row, column, inherited):
            lines.append(f"    {clause}")
    sql = f"CREATE {unlogged}TABLE {quote(row['schema'], row['name'])} ("
    sql += "\n" + ",\n".join(lines) + "\n)" if lines else ")"
    if parents:
        sql += f"\nINHERITS ({', '.join(quote(p['schema'], p['name']) for p in parents)})"
    if row["partition_key"]:
        sql += f"\nPARTITION BY {row['partition_key']}"
    return sql + _method(row) + _with(_options(row))


def _options(row: Row) -> list[str]:
    """The storage parameters of a table, those of its TOAST table included."""
    toast = [f"toast.{option}" for option in row["toast_options"] or ()]
    return [*(row["reloptions"] or ()), *toast]


def _method(row: Row, usual: str = "heap") -> str:
    return f"\nUSING {quote(row['method'])}" if row["method"] not in (None, usual) else ""


def _with(options: list[str] | None) -> str:
    if not options:
        return ""
    listed = []
    for option in options:
        name, _, value = option.partition("=")
        listed.append(f"{name}={quote_text(value)}")
    return f"\nWITH ({', '.join(listed)})"


def column_sql(column: Row, options: str = "") -> str:
    """A column as CREATE TABLE has it; ``options`` are those of a foreign table."""
    sql = f"{quote(column['name'])} {column['type']}{options}"
    if column["collation"]:
        sql += f" COLLATE {column['collation']}"
    if column["attgenerated"] == "s":
        sql += f" GENERATED ALWAYS AS ({column['expression']}) STORED"
    elif column["attgenerated"]:
        sql += f" GENERATED ALWAYS AS ({column['expression']}) VIRTUAL"
    elif column["attidentity"]:
        sql += f" GENERATED {identity(column)} AS IDENTITY{column.get('sequence', '')}"
    elif column["expression"]:
        sql += f" DEFAULT {column['expression']}"
    return sql


def identity(column: Row) -> str:
    """How an identity column takes values."""
    return "ALWAYS" if column["attidentity"] == "a" else "BY DEFAULT"


def _partitions(catalogue: Catalogue, oid: int) -> Iterator[str]:
    """Yield the partitions of a table, those of partitions after them."""
    parent = catalogue.by_oid[oid]
    children = [catalogue.by_oid[c] for c in catalogue.children[oid] if c in catalogue.by_oid]
    for child in sorted(children, key=lambda c: (c["schema"], c["name"])):
        if not child["relispartition"]:
            continue
        place = quote(child["schema"], child["name"])
        yield from _create_partition(catalogue, parent, child, place)
        if child["comment"]:
            yield f"COMMENT ON TABLE {place} IS {quote_text(child['comment'])}"
        yield from _column_settings(catalogue, child, place)
        for column in catalogue.columns[child["oid"]]:
            if column["comment"]:
                spelt = f"COMMENT ON COLUMN {place}.{quote(column['name'])}"
                yield f"{spelt} IS {quote_text(column['comment'])}"
        for constraint in catalogue.constraints[child["oid"]]:
            own = _is_own(constraint) and not constraint["coninhcount"]
            unproved = constraint["kind"] == "n" and not constraint["convalidated"]
            if own and (constraint["kind"] in "pufcx" or unproved):
                name, definition = quote(constraint["name"]), constraint["definition"]
                yield f"ALTER TABLE {place} ADD CONSTRAINT {name} {definition}"
            if constraint["comment"]:
                yield _constraint_comment(constraint, place)
        yield from _indexes(catalogue, child, place)
        for trigger in catalogue.triggers[child["oid"]]:
            yield trigger["definition"]
            if trigger["comment"]:
                yield _trigger_comment(trigger, place)
        yield from _trigger_states(catalogue, child["oid"], place)
        yield from _surroundings(catalogue, child, place)
        yield from _partitions(catalogue, child["oid"])


def _create_partition(catalogue: Catalogue, parent: Row, child: Row, place: str) -> Iterator[str]:
    """Yield what makes a partition; one whose columns or names are its own was attached."""
    above = quote(parent["schema"], parent["name"])
    key = f"\nPARTITION BY {child['partition_key']}" if child["partition_key"] else ""
    end = _with(_options(child))
    if _is_like(catalogue, parent, child):
        method = _method(child, parent["method"] or "heap")
        yield f"CREATE TABLE {place} PARTITION OF {above}\n{child['bound']}{key}{method}{end}"
        yield from _differing_defaults(catalogue, parent, child)
        return
    lines = [
        f"    {column_sql({**c, 'attidentity': ''})}{column_not_null(child, c, set())}"
        for c in catalogue.columns[child["oid"]]
    ]
    yield f"CREATE TABLE {place} (\n" + ",\n".join(lines) + f"\n){key}{_method(child)}{end}"
    yield f"ALTER TABLE {above} ATTACH PARTITION {place} {child['bound']}"


def _is_like(catalogue: Catalogue, parent: Row, child: Row) -> bool:
    """Whether a partition made from its parent needs no more than other defaults."""
    if parent["method"] and not child["method"]:
        return False
    both = (catalogue.columns[row["oid"]] for row in (parent, child))
    return all(
        above
        and below
        and above["name"] == below["name"]
        and (not below["attgenerated"] or below["expression"] == above["expression"])
        and _has_null_of(child, above, below)
        for above, below in itertools.zip_longest(*both)
    )


def _has_null_of(child: Row, above: Row, below: Row) -> bool:
    """Whether a partition's column gets its NOT NULL from the parent, or by SET NOT NULL."""
    if above["attnotnull"] or not below["attnotnull"]:
        return bool(above["null_name"] == below["null_name"])
    return is_usual_not_null(child, below)


def _differing_defaults(catalogue: Catalogue, parent: Row, child: Row) -> Iterator[str]:
    inherited = {c["name"]: c for c in catalogue.columns[parent["oid"]]}
    place = quote(child["schema"], child["name"])
    for column in catalogue.columns[child["oid"]]:
        above = inherited.get(column["name"])
        alter = f"ALTER TABLE ONLY {place} ALTER COLUMN {quote(column['name'])}"
        if above is None:
            continue
        if column["attnotnull"] and not above["attnotnull"]:
            yield f"{alter} SET NOT NULL"
        if not column["attidentity"]:
            yield from _other_expression(above, column, alter)


def _inherited_defaults(catalogue: Catalogue, row: Row, place: str) -> Iterator[str]:
    above = _columns_above(catalogue, row)
    inherited = passed_on(_columns_of(catalogue, catalogue.parents[row["oid"]]))
    for column in catalogue.columns[row["oid"]]:
        parent = above.get(column["name"])
        if parent is None or column["attislocal"]:
            continue
        alter = f"ALTER TABLE ONLY {place} ALTER COLUMN {quote(column['name'])}"
        yield from _other_expression(parent, column, alter)
        if column["attnotnull"] and not (column["name"] in inherited or column.get("null_late")):
            yield f"{alter} SET NOT NULL"


def _other_expression(above: Row, column: Row, alter: str) -> Iterator[str]:
    """Yield what gives a column another default than its parent's, or computes it otherwise."""
    expression = column["expression"]
    if expression == above["expression"]:
        return
    if column["attgenerated"]:
        yield f"{alter} SET EXPRESSION AS ({expression})"
    else:
        yield f"{alter} SET DEFAULT {expression}" if expression else f"{alter} DROP DEFAULT"


def _columns_above(catalogue: Catalogue, row: Row) -> dict[str, Row]:
    found = list(_columns_of(catalogue, catalogue.parents[row["oid"]]))
    found.sort(key=lambda column: column["expression"] is not None)  # those have the last word
    return {column["name"]: column for column in found}


def _columns_of(catalogue: Catalogue, parents: list[Row]) -> Iterator[Row]:
    for parent in parents:
        yield from catalogue.columns[parent["parent"]]


def _column_settings(catalogue: Catalogue, row: Row, place: str) -> Iterator[str]:
    """Yield how columns are stored and counted; partitions and heirs begin as their parents are."""
    above = _columns_above(catalogue, row)
    for column in catalogue.columns[row["oid"]]:
        alter = f"ALTER TABLE ONLY {place} ALTER COLUMN {quote(column['name'])}"
        parent = above.get(column["name"], {})
        usual = column["typstorage"]
        if column["attstorage"] != usual or parent.get("attstorage", usual) != usual:
            yield f"{alter} SET STORAGE {_STORAGE[column['attstorage']]}"
        if column["compression"]:
            method = {"p": "pglz", "l": "lz4"}[column["compression"]]
            yield f"{alter} SET COMPRESSION {method}"
        elif parent.get("compression"):
            yield f"{alter} SET COMPRESSION default"
        if _is_set(column["attstattarget"]):
            yield f"{alter} SET STATISTICS {column['attstattarget']}"
        if column["attoptions"]:
            yield f"{alter} SET ({', '.join(column['attoptions'])})"


def _is_set(target: int | None) -> bool:
    """Whether rows are counted otherwise than usual, which is -1 up to version 16, then NULL."""
    return target is not None and target >= 0


def _indexes(catalogue: Catalogue, row: Row, place: str) -> Iterator[str]:
    for index in catalogue.indexes[row["oid"]]:
        name = quote(row["schema"], index["name"])
        if index["constraint_oid"] is None:
            yield index["definition"]
            if index["attached"]:
                yield f"ALTER INDEX {index['attached']} ATTACH PARTITION {name}"
        elif index["attached"]:
            continue
        elif index["options"]:
            yield f"ALTER INDEX {name} SET ({', '.join(index['options'])})"
        for number, target in index["targets"]:
            yield f"ALTER INDEX {name} ALTER COLUMN {number} SET STATISTICS {target}"
        if index["comment"]:
            yield f"COMMENT ON INDEX {name} IS {quote_text(index['comment'])}"
        if index["indisclustered"]:
            yield f"ALTER TABLE {place} CLUSTER ON {quote(index['name'])}"
        if index["indisreplident"]:
            yield f"ALTER TABLE {place} REPLICA IDENTITY USING INDEX {quote(index['name'])}"


def _rules(catalogue: Catalogue, oid: int, kind: str, place: str) -> Iterator[str]:
    for rule in catalogue.rules[oid]:
        name = quote(rule["name"])
        yield rule["definition"].rstrip(";")
        if rule["enabled"] in _ENABLED:
            yield f"ALTER TABLE {place} {_ENABLED[rule['enabled']]} RULE {name}"
        if rule["comment"]:
            yield f"COMMENT ON RULE {name} ON {place} IS {quote_text(rule['comment'])}"


def _trigger_states(catalogue: Catalogue, oid: int, place: str) -> Iterator[str]:
    for trigger in catalogue.triggers[oid]:
        if trigger["enabled"] in _ENABLED:
            state = _ENABLED[trigger["enabled"]]
            yield f"ALTER TABLE {place} {state} TRIGGER {quote(trigger['name'])}"
    for trigger in catalogue.clones[oid]:
        if trigger["changed"]:
            state = _ENABLED.get(trigger["enabled"], "ENABLE")
            yield f"ALTER TABLE {place} {state} TRIGGER {quote(trigger['name'])}"
        if trigger["comment"]:
            yield _trigger_comment(trigger, place)


def _security(catalogue: Catalogue, row: Row, place: str) -> Iterator[str]:
    for policy in catalogue.policies[row["oid"]]:
        name = quote(policy["name"])
        sql = f"CREATE POLICY {name} ON {place}"
        if not policy["permissive"]:
            sql += " AS RESTRICTIVE"
        sql += f" FOR {_COMMANDS[policy['command']]} TO {', '.join(policy['roles'])}"
        if policy["using"]:
            sql += f" USING ({policy['using']})"
        if policy["checks"]:
            sql += f" WITH CHECK ({policy['checks']})"
        yield sql
        if policy["comment"]:
            yield f"COMMENT ON POLICY {name} ON {place} IS {quote_text(policy['comment'])}"
    if row["relrowsecurity"]:
        yield f"ALTER TABLE {place} ENABLE ROW LEVEL SECURITY"
    if row["relforcerowsecurity"]:
        yield f"ALTER TABLE {place} FORCE ROW LEVEL SECURITY"


def _statistics(catalogue: Catalogue, oid: int) -> Iterator[str]:
    for statistics in catalogue.statistics[oid]:
        name = quote(statistics["schema"], statistics["name"])
        yield statistics["definition"]
        if _is_set(statistics["target"]):
            yield f"ALTER STATISTICS {name} SET STATISTICS {statistics['target']}"
        if statistics["comment"]:
            yield f"COMMENT ON STATISTICS {name} IS {quote_text(statistics['comment'])}"


def view_statements(catalogue: Catalogue, row: Row) -> Iterator[str]:
    """Yield what a view has besides its query; for a materialised view, the whole of it."""
    place, oid = quote(row["schema"], row["name"]), row["oid"]
    if row["kind"] == "m":
        query, filled = row["query"].rstrip(";"), "" if row["relispopulated"] else " NO"
        head = f"CREATE MATERIALIZED VIEW {place}{_method(row)}{_with(row['reloptions'])}"
        yield f"{head} AS\n{query}\nWITH{filled} DATA"
        yield from _column_settings(catalogue, row, place)
        yield from _indexes(catalogue, row, place)
        yield from _statistics(catalogue, oid)
    elif row["reloptions"]:
        options = _with(row["reloptions"]).strip().removeprefix("WITH ")
        yield f"ALTER VIEW {place} SET {options}"
    for column in catalogue.columns[oid]:
        if column["expression"]:
            name = quote(column["name"])
            yield f"ALTER VIEW {place} ALTER COLUMN {name} SET DEFAULT {column['expression']}"
    yield from _rules(catalogue, oid, "VIEW", place)
    for trigger in catalogue.triggers[oid]:
        yield trigger["definition"]
        if trigger["comment"]:
            yield _trigger_comment(trigger, place)
    yield from _trigger_states(catalogue, oid, place)


def _trigger_comment(trigger: Row, place: str) -> str:
    name = quote(trigger["name"])
    return f"COMMENT ON TRIGGER {name} ON {place} IS {quote_text(trigger['comment'])}"


def sequence_sql(row: Row) -> str:
    """The statement that makes a sequence."""
    head = f"CREATE {'UNLOGGED ' if row['relpersistence'] == 'u' else ''}SEQUENCE"
    return f"{head} {quote(row['schema'], row['name'])} AS {row['type']}{sequence_options(row)}"


def sequence_options(row: Row) -> str:
    """What follows the name of a sequence, or stands between the brackets of an identity."""
    return (
        f" INCREMENT BY {row['step']} MINVALUE {row['least']} MAXVALUE {row['most']}"
        f" START WITH {row['start']} CACHE {row['cache']}{' CYCLE' if row['cycle'] else ''}"
    )


def sequence_state(row: Row, value: int, called: bool) -> str:
    """The statement that sets a sequence to where it was."""
    place = quote_text(quote(row["schema"], row["name"]))
    return f"SELECT pg_catalog.setval({place}, {value}, {str(called).lower()})"


def type_statements(catalogue: Catalogue, row: Row) -> Iterator[str]:
    """Yield the statements that make a type of the user's own."""
    place = quote(row["schema"], row["name"])
    if row["kind"] == "e":
        yield f"CREATE TYPE {place} AS ENUM ({', '.join(map(quote_text, row['labels']))})"
    elif row["kind"] == "r":
        yield f"CREATE TYPE {place} AS RANGE ({', '.join(_range_parts(catalogue, row))})"
    elif row["kind"] == "d":
        yield _create_domain(catalogue, row)
        yield from _domain_checks(catalogue, row, place)
    elif row["kind"] == "c" and row["relkind"] == "c":
        attributes = ", ".join(
            f"{quote(a['name'])} {a['type']}"
            + (f" COLLATE {a['collation']}" if a["collation"] else "")
            for a in catalogue.columns[row["typrelid"]]
        )
        yield f"CREATE TYPE {place} AS ({attributes})"


def _range_parts(catalogue: Catalogue, row: Row) -> Iterator[str]:
    facts = catalogue.ranges[row["oid"]]
    yield f"SUBTYPE = {facts['subtype']}"
    if not facts["opcdefault"]:
        yield f"SUBTYPE_OPCLASS = {quote(facts['class_schema'], facts['class_name'])}"
    if facts["rngcollation"] and facts["rngcollation"] != facts["own_collation"]:
        yield f"COLLATION = {quote(facts['collation_schema'], facts['collation'])}"
    if facts["difference"]:
        yield f"SUBTYPE_DIFF = {facts['difference']}"
    many = catalogue.types.get(facts["multirange"])
    if many and (many["schema"], many["name"]) != (row["schema"], _multirange(row["name"])):
        yield f"MULTIRANGE_TYPE_NAME = {quote(many['schema'], many['name'])}"


def _multirange(name: str) -> str:
    """The name that the multiranges of a range type get if nobody gives them one."""
    return name.replace("range", "multirange", 1) if "range" in name else f"{name}_multirange"


def _create_domain(catalogue: Catalogue, row: Row) -> str:
    sql = f"CREATE DOMAIN {quote(row['schema'], row['name'])} AS {row['base']}"
    if row["collation"]:
        sql += f" COLLATE {row['collation']}"
    if row["typdefault"] is not None:
        sql += f" DEFAULT {row['typdefault']}"
    if not row["typnotnull"]:
        return sql
    (name,) = [c["name"] for c in _of_domain(catalogue, row) if c["kind"] == "n"] or [None]
    named = name not in (None, f"{row['name']}_not_null")
    return f"{sql} CONSTRAINT {quote(name)} NOT NULL" if named else f"{sql} NOT NULL"


def _of_domain(catalogue: Catalogue, row: Row) -> list[Row]:
    return [c for c in catalogue.constraints[0] if c["contypid"] == row["oid"]]


def _domain_checks(catalogue: Catalogue, row: Row, place: str) -> Iterator[str]:
    for constraint in _of_domain(catalogue, row):
        if constraint["kind"] in "cn":
            name = quote(constraint["name"])
            if constraint["kind"] == "c":
                yield f"ALTER DOMAIN {place} ADD CONSTRAINT {name} {constraint['definition']}"
            if comment := constraint["comment"]:
                on = f"COMMENT ON CONSTRAINT {name} ON DOMAIN {place}"
                yield f"{on} IS {quote_text(comment)}"


def extension_sql(row: Row) -> Iterator[str]:
    """Yield the statements that bring an extension."""
    yield f"CREATE EXTENSION IF NOT EXISTS {quote(row['name'])} WITH SCHEMA {quote(row['schema'])}"
    if row["comment"] and row["comment"] != row["usual"]:
        yield f"COMMENT ON EXTENSION {quote(row['name'])} IS {quote_text(row['comment'])}"


_PROVIDERS = {"c": "libc", "i": "icu", "b": "builtin"}


def collation_sql(row: Row) -> str | None:
    """The statement that makes a collation; None for one whose provider cannot be named."""
    facts = row["facts"]
    provider = _PROVIDERS.get(facts["collprovider"])
    if provider is None:
        return None
    locale = facts.get("colllocale") or facts.get("colliculocale")  # by 17 and later, and earlier
    parts = [f"provider = {provider}"]
    if locale:
        parts.append(f"locale = {quote_text(locale)}")
    elif facts["collcollate"] == facts["collctype"]:
        parts.append(f"locale = {quote_text(facts['collcollate'])}")
    else:
        parts.append(f"lc_collate = {quote_text(facts['collcollate'])}")
        parts.append(f"lc_ctype = {quote_text(facts['collctype'])}")
    if facts.get("collicurules"):
        parts.append(f"rules = {quote_text(facts['collicurules'])}")
    if not facts["collisdeterministic"]:
        parts.append("deterministic = false")
    return f"CREATE COLLATION {quote(row['schema'], row['name'])} ({', '.join(parts)})"


def search_statements(catalogue: Catalogue, home: str) -> Iterator[str]:
    """Yield the dictionaries and configurations of a schema for the search in text."""
    for row in catalogue.dictionaries:
        if row["schema"] == home:
            options = f", {row['options']}" if row["options"] else ""
            place = f"TEXT SEARCH DICTIONARY {quote(home, row['name'])}"
            yield f"CREATE {place} (TEMPLATE = {row['template']}{options})"
            if row["comment"]:
                yield f"COMMENT ON {place} IS {quote_text(row['comment'])}"
    for row in catalogue.configurations:
        if row["schema"] == home:
            place = f"TEXT SEARCH CONFIGURATION {quote(home, row['name'])}"
            yield f"CREATE {place} (PARSER = {row['parser']})"
            for mapping in row["mappings"]:
                yield f"ALTER {place} ADD MAPPING FOR {mapping}"
            if row["comment"]:
                yield f"COMMENT ON {place} IS {quote_text(row['comment'])}"


_AGGREGATE_PARTS = (
    ("SFUNC", "sfunc"), ("STYPE", "stype"), ("FINALFUNC", "finalfunc"),
    ("COMBINEFUNC", "combinefunc"), ("SERIALFUNC", "serialfunc"),
    ("DESERIALFUNC", "deserialfunc"), ("MSFUNC", "msfunc"), ("MINVFUNC", "minvfunc"),
    ("MSTYPE", "mstype"), ("MFINALFUNC", "mfinalfunc"),
)  # fmt: skip


_MODIFY = {"r": "READ_ONLY", "s": "SHAREABLE", "w": "READ_WRITE"}


def aggregate_sql(schema: str, name: str, row: Row) -> str:
    """The statement that makes an aggregate."""
    parts = [
        f"{word} = {row[key]}" for word, key in _AGGREGATE_PARTS if row[key] not in (None, "-")
    ]
    for word, key in (("INITCOND", "agginitval"), ("MINITCOND", "aggminitval")):
        if row[key] is not None:
            parts.append(f"{word} = {quote_text(row[key])}")
    usual = "r" if row["aggkind"] == "n" else "w"
    for head, end in (("", "finalfunc"), ("M", "mfinalfunc")):
        low = head.lower()
        if row[f"agg{low}finalextra"]:
            parts.append(f"{head}FINALFUNC_EXTRA")
        if row[end] and row[f"agg{low}finalmodify"] != usual:
            parts.append(f"{head}FINALFUNC_MODIFY = {_MODIFY[row[f'agg{low}finalmodify']]}")
        if row[f"{low}sspace"]:
            parts.append(f"{head}SSPACE = {row[f'{low}sspace']}")
    if row["aggkind"] == "h":
        parts.append("HYPOTHETICAL")
    if row["sortop"]:
        operator = row["sortop"].partition("(")[0]
        home, _, sign = operator.rpartition(".")
        parts.append(f"SORTOP = OPERATOR({home or 'pg_catalog'}.{sign})")
    parallel = {"s": "SAFE", "r": "RESTRICTED"}.get(row["proparallel"])
    if parallel:
        parts.append(f"PARALLEL = {parallel}")
    arguments = row["arguments"] or "*"
    return f"CREATE AGGREGATE {quote(schema, name)}({arguments}) ({', '.join(parts)})"
