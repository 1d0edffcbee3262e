"""Pages on an archive and its definitions: overview, schemas, views, routines, people."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from muniment.errors import NotFound
from muniment.sql.model import Column, Schema, Table
from muniment.sql.original import split_original
from muniment.web.page import Page, text_of
from muniment.web.references import reference_of
from muniment.web.site import OpenArchive, Site
from muniment.web.urls import Urls, find

__all__ = [
    "archive_page", "frame", "home_page", "people_page", "progress_page", "routine_page",
    "schema_page", "type_text", "view_page",
]  # fmt: skip


def home_page(request: Request) -> Page:
    """All archives of this server."""
    site: Site = request.app.state.site
    archives = [
        {
            "name": archive.name,
            "dbname": archive.database.dbname,
            "description": archive.database.description,
            "tables": len(archive.tables),
            "rows": sum(table.rows for _, table in archive.tables),
            "size": archive.size,
            "url": Urls(archive).home,
        }
        for archive in site.archives.values()
    ]
    return Page("home.html", {"archives": archives})


def frame(archive: OpenArchive) -> dict[str, Any]:
    """What every page of an archive shows around its own."""
    return {
        "archive": archive,
        "urls": Urls(archive),
        "progress": archive.progress,
        "ready": archive.session is not None,
    }


def open_archive(request: Request) -> OpenArchive:
    site: Site = request.app.state.site
    return site.open(request)


def archive_page(request: Request) -> Page:
    """The archive: what it is, whose, how large, how to cite it."""
    archive = open_archive(request)
    database, urls = archive.database, Urls(archive)
    notes = list(archive.session.notes) if archive.session else []
    reference = reference_of(archive, "", "", request.app.state.site.base)
    facts = {
        "file": archive.file,
        "size": archive.size,
        "sha256": archive.digest or None,
        "version": database.version,
        "dbname": database.dbname,
        "description": database.description,
        "owner": database.data_owner,
        "timespan": database.data_origin_timespan,
        "archived": database.archival_date,
        "archiver": database.archiver,
        "contact": database.archiver_contact,
        "product": database.database_product,
        "producer": database.producer_application,
        "digests": [{"type": d.digest_type, "digest": d.digest} for d in database.message_digests],
        "rows": sum(table.rows for _, table in archive.tables),
        "schemas": [_schema_facts(archive, urls, schema) for schema in database.schemas],
        "users": len(database.users),
        "roles": len(database.roles),
        "privileges": len(database.privileges),
        "pdi": archive.pdi or None,
        "citation": reference.plain(),
        "citations": reference.texts(),
        "verdict": archive.verdict.as_json(),
        "notes": notes[:200],
    }
    return Page("archive.html", facts, frame(archive), references=[reference])


def _schema_facts(archive: OpenArchive, urls: Urls, schema: Schema) -> dict[str, Any]:
    return {
        "name": schema.name,
        "description": schema.description,
        "url": urls.schema(schema),
        "tables": [_table_facts(urls, schema, table) for table in schema.tables],
        "views": [
            {
                "name": view.name,
                "description": view.description,
                "columns": len(view.columns),
                "url": urls.part("v", schema, schema.views, number),
            }
            for number, view in enumerate(schema.views)
        ],
        "routines": [
            {
                "name": routine.name,
                "description": routine.description,
                "kind": routine.characteristic,
                "url": urls.part("r", schema, schema.routines, number),
            }
            for number, routine in enumerate(schema.routines)
        ],
        "triggers": [
            {"name": trigger.name, "table": table.name, "url": urls.table(schema, table)}
            for table in schema.tables
            for trigger in table.triggers
        ],
        "types": [
            {
                "name": user_type.name,
                "category": user_type.category,
                "base": str(user_type.base) if user_type.base else None,
                "attributes": [{"name": a.name, "type": str(a.type)} for a in user_type.attributes],
                "description": user_type.description,
            }
            for user_type in schema.types
        ],
    }


def _table_facts(urls: Urls, schema: Schema, table: Table) -> dict[str, Any]:
    return {
        "name": table.name,
        "rows": table.rows,
        "columns": len(table.columns),
        "description": split_original(table.description)[0],
        "url": urls.table(schema, table),
    }


def schema_page(request: Request) -> Page:
    """One schema: tables, views, routines, triggers and types."""
    archive = open_archive(request)
    schemas = archive.database.schemas
    _, schema = find(schemas, request.path_params["schema"], "schema")
    return Page("schema.html", _schema_facts(archive, Urls(archive), schema), frame(archive))


def view_page(request: Request) -> Page:
    """A view: its definition, and whether it can be queried here."""
    archive = open_archive(request)
    _, schema = find(archive.database.schemas, request.path_params["schema"], "schema")
    number, view = find(schema.views, request.path_params["view"], "view")
    facts: dict[str, Any] = {
        "schema": schema.name,
        "name": view.name,
        "description": view.description,
        "query": view.query,
        "query_original": view.query_original,
        "columns": [_column_facts(column) for column in view.columns],
        "sql": None,
        "reason": None,
    }
    if archive.session and archive.about:
        place = archive.database.schemas.index(schema)
        before = sum(len(s.views) for s in archive.database.schemas[:place])
        indexed = archive.about.views[before + number]
        why = f"the view {indexed.schema}.{indexed.name} cannot be queried: "
        facts["reason"] = next(
            (n.removeprefix(why) for n in archive.session.notes if n.startswith(why)), None
        )
        if facts["reason"] is None:
            facts["sql"] = f"SELECT * FROM {_quoted(indexed.schema)}.{_quoted(indexed.name)}"
    return Page("view.html", facts, frame(archive))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _column_facts(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": type_text(column),
        "original": column.type_original,
        "nullable": column.nullable is not False,
        "description": column.description,
    }


def type_text(column: Column) -> str:
    """A column's type as SQL writes it."""
    array = "" if column.cardinality is None else f" ARRAY[{column.cardinality}]"
    return f"{column.type}{array}"


def routine_page(request: Request) -> Page:
    """A function or procedure: its parameters and its source."""
    archive = open_archive(request)
    _, schema = find(archive.database.schemas, request.path_params["schema"], "schema")
    _, routine = find(schema.routines, request.path_params["routine"], "routine")
    facts = {
        "schema": schema.name,
        "name": routine.name,
        "specific_name": routine.specific_name,
        "description": routine.description,
        "characteristic": routine.characteristic,
        "return_type": routine.return_type,
        "parameters": [
            {"name": p.name, "mode": p.mode, "type": str(p.type), "description": p.description}
            for p in routine.parameters
        ],
        "source": routine.source or routine.body,
    }
    return Page("routine.html", facts, frame(archive))


def people_page(request: Request) -> Page:
    """Users, roles and privileges."""
    archive = open_archive(request)
    database = archive.database
    facts = {
        "users": [{"name": u.name, "description": u.description} for u in database.users],
        "roles": [
            {"name": r.name, "admin": r.admin, "description": r.description} for r in database.roles
        ],
        "privileges": [
            {
                "type": p.type,
                "object": p.object,
                "grantor": p.grantor,
                "grantee": p.grantee,
                "option": p.option,
            }
            for p in database.privileges
        ],
    }
    return Page("people.html", facts, frame(archive))


def progress_page(request: Request) -> Page:
    """How far the index has come."""
    archive = open_archive(request)
    progress = archive.progress
    facts = {
        "state": progress.state,
        "table": progress.table,
        "rows": progress.rows,
        "total": progress.total,
        "percent": 100 if progress.state == "ready" else progress.percent,
        "error": progress.error,
        "verdict": archive.verdict.as_json(),
    }
    return Page("progress.html", facts, frame(archive))


def find_table(request: Request, archive: OpenArchive) -> tuple[Schema, Table]:
    """Return the table that an address names."""
    _, schema = find(archive.database.schemas, request.path_params["schema"], "schema")
    _, table = find(schema.tables, request.path_params["table"], "table")
    return schema, table


def need_index(archive: OpenArchive) -> None:
    """Raise NotFound with a sentence unless the index is there."""
    if archive.session is None:
        raise NotFound(archive.progress.error or text_of("index_needed"))
