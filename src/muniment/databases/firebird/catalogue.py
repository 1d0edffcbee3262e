"""What a Firebird database defines, from its system tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from muniment.databases.firebird.types import Field, domain_sql
from muniment.errors import UsageError
from muniment.sql.model import (
    CheckConstraint,
    Column,
    Database,
    ForeignKey,
    Parameter,
    Privilege,
    Reference,
    Role,
    Routine,
    Schema,
    Table,
    Trigger,
    UniqueKey,
    UserType,
    View,
)
from muniment.sql.names import quoted
from muniment.sql.original import Original, join_original
from muniment.sql.selection import Selection
from muniment.sql.types import NamedType, PredefinedType, Type

__all__ = ["PRODUCT", "SCHEMA", "Catalogue"]

PRODUCT, SCHEMA = "Firebird", "main"
_FIELD = (
    "f.RDB$FIELD_NAME, f.RDB$FIELD_TYPE, f.RDB$FIELD_SUB_TYPE, f.RDB$FIELD_LENGTH,"
    " f.RDB$CHARACTER_LENGTH, f.RDB$FIELD_PRECISION, f.RDB$FIELD_SCALE, f.RDB$CHARACTER_SET_ID,"
    " f.RDB$DIMENSIONS"
)
_COLUMNS = (
    f"SELECT r.RDB$RELATION_NAME, r.RDB$FIELD_NAME, {_FIELD}, r.RDB$NULL_FLAG, f.RDB$NULL_FLAG,"
    " r.RDB$DEFAULT_SOURCE, r.RDB$DESCRIPTION, f.RDB$COMPUTED_SOURCE, r.RDB$IDENTITY_TYPE,"
    " f.RDB$DEFAULT_SOURCE"
    " FROM RDB$RELATION_FIELDS r JOIN RDB$FIELDS f ON f.RDB$FIELD_NAME = r.RDB$FIELD_SOURCE"
    " ORDER BY r.RDB$RELATION_NAME, r.RDB$FIELD_POSITION"
)
_RELATIONS = (
    "SELECT RDB$RELATION_NAME, RDB$RELATION_TYPE, RDB$DESCRIPTION, RDB$VIEW_SOURCE"
    " FROM RDB$RELATIONS WHERE COALESCE(RDB$SYSTEM_FLAG, 0) = 0 ORDER BY RDB$RELATION_NAME"
)
_KEYS = (
    "SELECT c.RDB$RELATION_NAME, c.RDB$CONSTRAINT_TYPE, c.RDB$CONSTRAINT_NAME, s.RDB$FIELD_NAME"
    " FROM RDB$RELATION_CONSTRAINTS c JOIN RDB$INDEX_SEGMENTS s"
    " ON s.RDB$INDEX_NAME = c.RDB$INDEX_NAME"
    " ORDER BY c.RDB$CONSTRAINT_NAME, s.RDB$FIELD_POSITION"
)
_REFERENCES = (
    "SELECT r.RDB$CONSTRAINT_NAME, u.RDB$CONSTRAINT_NAME, u.RDB$RELATION_NAME, r.RDB$UPDATE_RULE,"
    " r.RDB$DELETE_RULE FROM RDB$REF_CONSTRAINTS r JOIN RDB$RELATION_CONSTRAINTS u"
    " ON u.RDB$CONSTRAINT_NAME = r.RDB$CONST_NAME_UQ"
)
_CHECKS = (
    "SELECT DISTINCT c.RDB$RELATION_NAME, c.RDB$CONSTRAINT_NAME, CAST(t.RDB$TRIGGER_SOURCE AS"
    " VARCHAR(8000)) FROM RDB$RELATION_CONSTRAINTS c JOIN RDB$CHECK_CONSTRAINTS k"
    " ON k.RDB$CONSTRAINT_NAME = c.RDB$CONSTRAINT_NAME JOIN RDB$TRIGGERS t"
    " ON t.RDB$TRIGGER_NAME = k.RDB$TRIGGER_NAME WHERE c.RDB$CONSTRAINT_TYPE = 'CHECK'"
    " ORDER BY 1, 2"
)
_INDEXES = (
    "SELECT i.RDB$RELATION_NAME, i.RDB$INDEX_NAME, i.RDB$UNIQUE_FLAG, i.RDB$INDEX_TYPE,"
    " i.RDB$EXPRESSION_SOURCE, s.RDB$FIELD_NAME FROM RDB$INDICES i LEFT JOIN RDB$INDEX_SEGMENTS s"
    " ON s.RDB$INDEX_NAME = i.RDB$INDEX_NAME WHERE COALESCE(i.RDB$SYSTEM_FLAG, 0) = 0"
    " AND NOT EXISTS (SELECT 1 FROM RDB$RELATION_CONSTRAINTS c"
    " WHERE c.RDB$INDEX_NAME = i.RDB$INDEX_NAME) ORDER BY i.RDB$INDEX_NAME, s.RDB$FIELD_POSITION"
)
_TRIGGERS = (
    "SELECT RDB$RELATION_NAME, RDB$TRIGGER_NAME, RDB$TRIGGER_TYPE, RDB$TRIGGER_SEQUENCE,"
    " RDB$TRIGGER_SOURCE, RDB$DESCRIPTION FROM RDB$TRIGGERS t"
    " WHERE COALESCE(RDB$SYSTEM_FLAG, 0) = 0"
    " AND RDB$RELATION_NAME IS NOT NULL AND NOT EXISTS (SELECT 1 FROM RDB$CHECK_CONSTRAINTS k"
    " WHERE k.RDB$TRIGGER_NAME = t.RDB$TRIGGER_NAME) ORDER BY RDB$TRIGGER_NAME"
)
_DOMAINS = (
    f"SELECT {_FIELD}, f.RDB$DEFAULT_SOURCE, f.RDB$VALIDATION_SOURCE, f.RDB$NULL_FLAG,"
    " f.RDB$DESCRIPTION FROM RDB$FIELDS f WHERE COALESCE(f.RDB$SYSTEM_FLAG, 0) = 0"
    " AND f.RDB$FIELD_NAME NOT STARTING WITH 'RDB$' ORDER BY f.RDB$FIELD_NAME"
)
_PARAMETERS = (
    f"SELECT p.RDB$PROCEDURE_NAME, p.RDB$PARAMETER_NAME, p.RDB$PARAMETER_TYPE, {_FIELD}"
    " FROM RDB$PROCEDURE_PARAMETERS p JOIN RDB$FIELDS f ON f.RDB$FIELD_NAME = p.RDB$FIELD_SOURCE"
    " WHERE COALESCE(p.RDB$SYSTEM_FLAG, 0) = 0"
    " ORDER BY p.RDB$PROCEDURE_NAME, p.RDB$PARAMETER_TYPE, p.RDB$PARAMETER_NUMBER"
)
_NUMBERED = re.compile(r"INTEG_\d+")
_SUFFIXES = {"PRIMARY KEY": "_PK", "UNIQUE": "_UQ", "FOREIGN KEY": "_FK", "CHECK": "_CK"}
_RIGHTS = {"S": "SELECT", "I": "INSERT", "U": "UPDATE", "D": "DELETE", "R": "REFERENCES",
           "X": "EXECUTE", "M": "MEMBERSHIP"}  # fmt: skip


class Catalogue:
    """Reads the definitions of a database."""

    def __init__(self, connection: Any, selection: Selection) -> None:
        self._connection, self._selection = connection, selection
        self.notes: list[str] = []
        self.left: list[tuple[str, str]] = []  # tables that are not archived
        self.computed: dict[str, set[str]] = {}
        self._domains = [(_field(row[:9]), *row[9:]) for row in self._rows(_DOMAINS)]
        self._domain_names = {field.name for field, *_ in self._domains}

    def read(self, dbname: str, connection: str, user: str) -> Database:
        """Return the whole database."""
        relations = list(self._rows(_RELATIONS))
        columns = self._columns()
        found = [r for r in relations if r[3] is None]
        wanted = [r for r in found if self._is_table(r) and self._takes(_name(r[0]))]
        self.left = [(SCHEMA, _name(r[0])) for r in found if r not in wanted]
        tables = [
            Table(_name(r[0]), f"table{k}", self._typed(_name(r[0]), columns), description=r[2])
            for k, r in enumerate(wanted)
        ]
        tables = [self._with_original(self._with_keys(table), columns) for table in tables]
        views = [
            View(_name(r[0]), self._typed(_name(r[0]), columns, view=True),
                 query_original=r[3].strip(), description=r[2])
            for r in relations if r[3] is not None
        ]  # fmt: skip
        schema = Schema(
            SCHEMA,
            "schema0",
            description=self._schema_block(),
            types=tuple(self._types()),
            tables=tuple(self._with_triggers(tables)),
            views=tuple(views),
            routines=tuple(self._routines()),
        )
        version = self._connection.info.firebird_version.rpartition("Firebird ")[2]
        return Database(
            dbname,
            database_product=f"{PRODUCT} {version}",
            connection=connection,
            database_user=user,
            schemas=(schema,),
            roles=tuple(self._roles()),
            privileges=tuple(self._privileges()),
        )

    def _rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        cursor = self._connection.cursor()
        try:
            yield from cursor.execute(sql).fetchall()
        finally:
            cursor.close()

    def _takes(self, name: str) -> bool:
        return self._selection.takes(SCHEMA, name)

    def _is_table(self, relation: tuple[Any, ...]) -> bool:
        if relation[1] in (0, None):
            return True
        self.notes.append(f"{_name(relation[0])} is external or temporary and was not archived")
        return False

    # Columns

    def _columns(self) -> dict[str, list[tuple[Any, ...]]]:
        found: dict[str, list[tuple[Any, ...]]] = {}
        for row in self._rows(_COLUMNS):
            found.setdefault(_name(row[0]), []).append(row)
        return found

    def _typed(
        self, table: str, columns: dict[str, list[tuple[Any, ...]]], view: bool = False
    ) -> tuple[Column, ...]:
        return tuple(self._column(table, row, view) for row in columns[table])

    def _column(self, table: str, row: tuple[Any, ...], view: bool) -> Column:
        name, field = _name(row[1]), _field(row[2:11])
        null, field_null, default, description, computed, identity, _ = row[11:]
        type_, bounds = self._type(table, name, field, view)
        if computed is not None and not view:
            self.computed.setdefault(table, set()).add(name)
        original = quoted(field.name) if field.name in self._domain_names else field.declared()
        if bounds:
            original += f" [{bounds[0]}:{bounds[1]}]"
        if identity is not None:
            original += " GENERATED BY DEFAULT AS IDENTITY"
        return Column(
            name,
            type_,
            original,
            nullable=not (null or field_null),
            default_value=_default(default),
            description=description,
            cardinality=bounds[1] - bounds[0] + 1 if bounds else None,
        )

    def _type(
        self, table: str, name: str, field: Field, view: bool
    ) -> tuple[Type, tuple[int, int] | None]:
        if self._selection.wants_text(SCHEMA, table, name):
            return PredefinedType("CLOB"), None
        known = field.sql_type()
        bounds = self._bounds(field) if field.dimensions else None
        if known is None or field.dimensions > 1:
            if view:
                return PredefinedType("CLOB"), None
            raise UsageError(
                f"{SCHEMA}.{table}.{name} has a type that SIARD cannot hold; add: "
                f"--as-text '{SCHEMA}.{table}.{name}'"
            )
        if field.name in self._domain_names and not field.dimensions:
            return NamedType(SCHEMA, field.name), None
        return known, bounds

    def _bounds(self, field: Field) -> tuple[int, int]:
        sql = (
            "SELECT RDB$LOWER_BOUND, RDB$UPPER_BOUND FROM RDB$FIELD_DIMENSIONS"
            f" WHERE RDB$FIELD_NAME = '{field.name.replace(chr(39), chr(39) * 2)}'"
        )
        ((low, high), *_) = self._rows(sql)
        return low, high

    def _types(self) -> Iterator[UserType]:
        for field, default, check, null, description in self._domains:
            base = field.sql_type()
            if base is not None and not field.dimensions:
                sql = domain_sql(field.name, field, default, check, not null)
                words = join_original(description, Original(PRODUCT, (sql,)))
                yield UserType(field.name, "distinct", base=base, description=words)

    # Keys

    def _with_keys(self, table: Table) -> Table:
        keys: dict[tuple[str, str], list[str]] = {}
        for relation, kind, name, column in self._all(_KEYS):
            if _name(relation) == table.name:
                keys.setdefault((kind.strip(), _name(name)), []).append(_name(column))
        named: dict[str, list[UniqueKey]] = {"PRIMARY KEY": [], "UNIQUE": []}
        for (kind, name), columns in keys.items():
            if kind in named:
                label = _constraint_name(name, table.name, kind, len(named[kind]))
                named[kind].append(UniqueKey(label, tuple(columns)))
        checks = [row for row in self._all(_CHECKS) if _name(row[0]) == table.name and row[2]]
        primary = named["PRIMARY KEY"]
        return replace(
            table,
            primary_key=primary[0] if primary else None,
            candidate_keys=tuple(named["UNIQUE"]),
            foreign_keys=tuple(self._foreign_keys(table.name, keys)),
            check_constraints=tuple(
                CheckConstraint(
                    _constraint_name(_name(name), table.name, "CHECK", number), _condition(source)
                )
                for number, (_, name, source) in enumerate(checks)
            ),
        )

    def _foreign_keys(
        self, table: str, keys: dict[tuple[str, str], list[str]]
    ) -> Iterator[ForeignKey]:
        referred: dict[str, list[str]] = {}
        for _, kind, name, column in self._all(_KEYS):
            if kind.strip() != "FOREIGN KEY":
                referred.setdefault(_name(name), []).append(_name(column))
        rules = {_name(row[0]): row[1:] for row in self._all(_REFERENCES)}
        own = [(n, columns) for (kind, n), columns in keys.items() if kind == "FOREIGN KEY"]
        for number, (name, columns) in enumerate(own):
            key, parent, update, delete = rules[name]
            pairs = zip(columns, referred[_name(key)], strict=True)
            yield ForeignKey(
                _constraint_name(name, table, "FOREIGN KEY", number),
                SCHEMA,
                _name(parent),
                tuple(Reference(a, b) for a, b in pairs),
                delete_action=_rule(delete),
                update_action=_rule(update),
            )

    def _all(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query that is asked for every table."""
        if not hasattr(self, "_kept"):
            self._kept: dict[str, list[tuple[Any, ...]]] = {}
        if sql not in self._kept:
            self._kept[sql] = list(self._rows(sql))
        return self._kept[sql]

    def _with_original(self, table: Table, columns: dict[str, list[tuple[Any, ...]]]) -> Table:
        """Add indexes and computed columns, which SIARD has no place for."""
        statements = [*self._indexes(table.name)]
        for position, row in enumerate(columns[table.name], 1):
            if row[15] is not None:
                place, column = quoted(table.name), quoted(_name(row[1]))
                statements.append(f"ALTER TABLE {place} ADD {column} COMPUTED BY {row[15].strip()}")
                statements.append(f"ALTER TABLE {place} ALTER COLUMN {column} POSITION {position}")
        if not statements:
            return table
        text = join_original(table.description, Original(PRODUCT, tuple(statements)))
        return replace(table, description=text)

    def _indexes(self, table: str) -> Iterator[str]:
        found: dict[str, list[tuple[Any, ...]]] = {}
        for row in self._all(_INDEXES):
            if _name(row[0]) == table:
                found.setdefault(_name(row[1]), []).append(row)
        for name, rows in found.items():
            _, _, unique, kind, expression, _ = rows[0]
            head = f"CREATE {'UNIQUE ' if unique else ''}{'DESCENDING ' if kind else ''}INDEX"
            listed = ", ".join(quoted(_name(row[5])) for row in rows if row[5])
            what = f"COMPUTED BY {expression.strip()}" if expression else f"({listed})"
            yield f"{head} {quoted(name)} ON {quoted(table)} {what}"

    # Code

    def _with_triggers(self, tables: list[Table]) -> Iterator[Table]:
        for table in tables:
            found = tuple(
                Trigger(
                    _name(name),
                    *_event(kind),
                    _trigger_sql(_name(name), table.name, kind, sequence, source or ""),
                    description=description,
                )
                for relation, name, kind, sequence, source, description in self._all(_TRIGGERS)
                if _name(relation) == table.name
            )
            yield replace(table, triggers=found)

    def _routines(self) -> Iterator[Routine]:
        parameters: dict[str, list[tuple[Any, ...]]] = {}
        for row in self._rows(_PARAMETERS):
            parameters.setdefault(_name(row[0]), []).append(row)
        for name, source, description in self._rows(
            "SELECT RDB$PROCEDURE_NAME, RDB$PROCEDURE_SOURCE, RDB$DESCRIPTION FROM RDB$PROCEDURES"
            " WHERE COALESCE(RDB$SYSTEM_FLAG, 0) = 0 AND RDB$PACKAGE_NAME IS NULL ORDER BY 1"
        ):
            plain = _name(name)
            rows = parameters.get(plain, [])
            yield Routine(
                plain,
                plain,
                description=description,
                source=_procedure_sql(plain, rows, source or ""),
                characteristic="PROCEDURE",
                parameters=tuple(map(_parameter, rows)),
            )

    def _schema_block(self) -> str | None:
        """Sequences and exceptions, which come back before everything else."""
        statements = []
        for (name,) in self._rows(
            "SELECT RDB$GENERATOR_NAME FROM RDB$GENERATORS WHERE COALESCE(RDB$SYSTEM_FLAG, 0) = 0"
            " ORDER BY 1"
        ):
            plain = quoted(_name(name))
            ((value,),) = self._rows(f"SELECT GEN_ID({plain}, 0) FROM RDB$DATABASE")
            statements.append(f"CREATE SEQUENCE {plain}")
            statements.append(f"ALTER SEQUENCE {plain} RESTART WITH {value}")
        for name, message in self._rows(
            "SELECT RDB$EXCEPTION_NAME, RDB$MESSAGE FROM RDB$EXCEPTIONS"
            " WHERE COALESCE(RDB$SYSTEM_FLAG, 0) = 0 ORDER BY 1"
        ):
            text = (message or "").replace("'", "''")
            statements.append(f"CREATE EXCEPTION {quoted(_name(name))} '{text}'")
        return join_original(None, Original(PRODUCT, tuple(statements))) if statements else None

    def _roles(self) -> Iterator[Role]:
        for name, owner in self._rows(
            "SELECT RDB$ROLE_NAME, RDB$OWNER_NAME FROM RDB$ROLES"
            " WHERE COALESCE(RDB$SYSTEM_FLAG, 0) = 0 ORDER BY 1"
        ):
            yield Role(_name(name), _name(owner))

    def _privileges(self) -> Iterator[Privilege]:
        for user, grantor, kind, relation, option in self._rows(
            "SELECT DISTINCT p.RDB$USER, p.RDB$GRANTOR, p.RDB$PRIVILEGE, p.RDB$RELATION_NAME,"
            " p.RDB$GRANT_OPTION FROM RDB$USER_PRIVILEGES p JOIN RDB$RELATIONS r"
            " ON r.RDB$RELATION_NAME = p.RDB$RELATION_NAME AND COALESCE(r.RDB$SYSTEM_FLAG, 0) = 0"
            " WHERE p.RDB$USER <> COALESCE(r.RDB$OWNER_NAME, '') ORDER BY 4, 1, 3"
        ):
            yield Privilege(
                _RIGHTS.get(kind.strip(), kind.strip()),
                _name(grantor or "SYSDBA"),
                _name(user),
                f"TABLE {quoted(_name(relation))}",
                "GRANT" if option else None,
            )


def _name(text: str) -> str:
    return text.rstrip(" ")


def _constraint_name(name: str, table: str, kind: str, number: int) -> str:
    """A name for constraints that Firebird numbers itself, the same in every database."""
    if _NUMBERED.fullmatch(name) is None:
        return name
    suffix = _SUFFIXES[kind] + (str(number) if number else "")
    return f"{table[: 31 - len(suffix)]}{suffix}"


def _field(row: tuple[Any, ...]) -> Field:
    name, *numbers = row
    return Field(_name(name), *(number or 0 for number in numbers))


def _default(source: str | None) -> str | None:
    if not source:
        return None
    text = source.strip()
    return text[7:].strip() if text[:7].upper() == "DEFAULT" else text.lstrip("= ")


def _condition(source: str) -> str:
    """CHECK (a > 0) without its word and its parentheses."""
    text = source.strip()
    text = text[5:].strip() if text[:5].upper() == "CHECK" else text
    return text[1:-1].strip() if text.startswith("(") and text.endswith(")") else text


def _rule(text: str | None) -> str:
    rule = (text or "").strip()
    return "NO ACTION" if rule in ("", "RESTRICT") else rule


def _event(kind: int) -> tuple[str, str]:
    """The moment and the events of a trigger, from its number."""
    bits = kind + 1
    events = [(bits >> shift) & 3 for shift in (1, 3, 5)]
    words = [("", "INSERT", "UPDATE", "DELETE")[event] for event in events if event]
    return "AFTER" if bits & 1 else "BEFORE", " OR ".join(words)


def _trigger_sql(name: str, table: str, kind: int, sequence: int, source: str) -> str:
    moment, events = _event(kind)
    head = f"CREATE TRIGGER {quoted(name)} FOR {quoted(table)} ACTIVE {moment} {events}"
    return f"{head} POSITION {sequence}\n{source.strip()}"


def _parameter(row: tuple[Any, ...]) -> Parameter:
    field = _field(row[3:])
    type_ = field.sql_type() or PredefinedType("CLOB")
    return Parameter(_name(row[1]), "OUT" if row[2] else "IN", type_, field.declared())


def _procedure_sql(name: str, parameters: list[tuple[Any, ...]], source: str) -> str:
    def listed(kind: int) -> str:
        return ", ".join(
            f"{quoted(_name(row[1]))} {_field(row[3:]).declared()}"
            for row in parameters
            if row[2] == kind
        )

    given, returned = listed(0), listed(1)
    head = f"CREATE PROCEDURE {quoted(name)}{f' ({given})' if given else ''}"
    head += f" RETURNS ({returned})" if returned else ""
    return f"{head} AS\n{source.strip()}"
