"""The API for programs: every operation on one screen."""

from __future__ import annotations

from typing import Any

from muniment.registry.workflow import KINDS
from muniment.web.api import reading, schemas, writing
from muniment.web.api.operations import Answer, Operation, Parameter
from muniment.web.api.schemas import text

__all__ = ["OPERATIONS"]

_ID = Parameter("id", schemas.NAME, "The name that is asked for.", required=True)
_DATE = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?$"}
_KIND = Parameter(
    "kind", {"type": "string", "enum": list(KINDS)}, "What is registered.", True, "path"
)
_ENTRY = Parameter(
    "name", text(255, pattern="^[A-Za-z0-9.-]+$"), "Its name in the registry.", True, "path"
)
_ACTS = {
    "notice": "Tell the registry of a name that is going to be used.",
    "observe": "Record that a name was seen in use: nobody else can get it then.",
    "reserve": "Keep a name for some days before it is proposed.",
    "extend": "Keep a reserved name longer, which is possible once.",
    "propose": "Hand in a registration, or a revision of one.",
    "decide": "Approve a proposal whose checks are good or waived, or reject it.",
    "withdraw": "Take back a notice, reservation or proposal.",
    "close": "End an entry: no new names, all old ones stay.",
    "steward": "Take over an entry whose organisation is gone.",
    "hand-on": "Give an entry to another organisation; its names go on.",
    "freeze": "Stop all changes while there is a dispute.",
    "release": "End a dispute.",
}
_PDI_ID = Parameter("id", schemas.PDI, "A PDI.", required=True)
_SERIES = Parameter("series", schemas.SERIES, "A document series.", True, "path")
_SPECIFIER = r"^[A-Za-z0-9_-]+(\.[a-z0-9-]+(\.[1-9][0-9]{0,5})?)?$"
_PDI = (
    _SERIES,
    Parameter("year", text(4, pattern="^[0-9]{4}$"), "The year of the name.", True, "path"),
    Parameter("month", text(2, pattern="^(0[1-9]|1[0-2])$"), "Its month.", True, "path"),
    Parameter("day", text(2, pattern="^(0[1-9]|[12][0-9]|3[01])$"), "Its day.", True, "path"),
    Parameter("specifier", text(200, pattern=_SPECIFIER),
              "ID, ID.FORMAT or ID.FORMAT.VERSION.", True, "path"),
)  # fmt: skip
_KINDS = ("application/octet-stream", "text/plain", "application/pdf", "image/png")
_MATCH = Parameter(
    "If-Match", text(2000, pattern='^("[0-9a-f]{64}"|[*])$'),
    "The digest of the latest version, or `*`; 412 if it is another one.", place="header",
)  # fmt: skip
_AGAIN = Parameter(
    "Idempotency-Key", text(202, pattern='^"?[A-Za-z0-9-]{1,200}"?$'),
    "A request that is sent again with the same key gets the same name.", place="header",
)  # fmt: skip
_OCTETS: dict[str, Any] = {}
_DEPOSITED = Answer(
    "It is kept, under this name.",
    schemas.thing({"pdi": {"type": "string"}, "url": {"type": "string"},
                   "sha256": schemas.maybe("string")}),
    headers=("Location", "Content-Location"),
)  # fmt: skip


def _json(about: str, schema: schemas.Schema, status: int = 200) -> dict[int, Answer]:
    return {status: Answer(about, schema)}


_READ = (400, 401, 403, 404)  # 451 where the law closes something
OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "GET", "/healthz", "health", "Whether the store can be read.",
        {200: Answer("It can.", {"type": "string"}, "text/plain")}, tag="operators",
    ),
    Operation(
        "GET", "/metrics", "metrics", "Counts for Prometheus.",
        {200: Answer("Counts.", {"type": "string"}, "text/plain")}, tag="operators",
    ),
    Operation(
        "GET", "/api/store", "getStore", "What the store is, and how much is in it.",
        _json("The store.", schemas.STORE), reading.get_store, refusals=(400,),
    ),
    Operation(
        "GET", "/api/objects", "listObjects", "Objects by date, a page at a time.",
        {200: Answer("A page.", schemas.OBJECTS, links={
            "object": ("getObject", "name", "$response.body#/objects/0/package"),
            "versions": ("locate", "id", "$response.body#/objects/0/pdi"),
            "access": ("getAccess", "id", "$response.body#/objects/0/package"),
            "citation": ("cite", "id", "$response.body#/objects/0/pdi"),
        })},
        reading.list_objects,
        (
            Parameter("since", _DATE, "From this day or second on."),
            Parameter("until", _DATE, "Up to this day or second."),
            Parameter("after", text(80, pattern="^[0-9TZ:-]{1,40}~[0-9]{1,9}~[0-9]{1,9}$"),
                      "`next` of the page before."),
            Parameter("limit", {"type": "integer", "minimum": 1, "maximum": 1000},
                      "How many at most."),
        ),
        refusals=(400,),
    ),
    Operation(
        "GET", "/api/objects/{name}", "getObject",
        "An object by any of its names: its description and its files.",
        _json("One version of the object.", schemas.OBJECT), reading.get_object,
        (
            Parameter("name", schemas.NAME,
                      "A content identifier, PDI, package or datastream.", True, "path"),
            Parameter("version", {"type": "integer", "minimum": 1, "maximum": 999999999},
                      "This version instead of the latest."),
        ),
        refusals=_READ,
    ),
    Operation(
        "GET", "/locate", "locate", "All versions of a name, and where they lie.",
        _json("The versions.", schemas.LOCATED), None, (_ID,), refusals=(400, 404, 406),
    ),
    Operation(
        "GET", "/api/access", "getAccess", "Who may read what a name stands for.",
        _json("The decision that holds.", schemas.ACCESS), reading.get_access, (_ID,),
        refusals=(400, 404),
    ),
    Operation(
        "GET", "/api/names", "resolve", "What the book of names says of a PDI.",
        _json("What it says.", schemas.RESOLUTION), reading.get_resolution, (_PDI_ID,), tag="names",
        refusals=(400, 404),
    ),
    Operation(
        "POST", "/api/names", "mint", "Give new names.",
        {201: Answer("They are on the disk, and never given again.", schemas.MINTED, links={
            "name": ("resolve", "id", "$response.body#/pdis/0"),
            "assertions": ("getAssertions", "subject", "$response.body#/pdis/0"),
        })},
        writing.mint,
        body=schemas.NEW_NAMES, scopes=("series:NAME", "store"), tag="names",
        refusals=(400, 403, 404, 409, 415, 422),
    ),
    Operation(
        "POST", "/api/names/mnemonic", "mintMnemonic", "Give a name that people can remember.",
        _json("It is on the disk, and never given again.", schemas.MINTED, 201),
        writing.mint_name, body=schemas.NEW_NAME, scopes=("series:NAME", "store"), tag="names",
        refusals=(400, 403, 404, 409, 415, 422),
    ),
    Operation(
        "POST", "/api/bindings", "bind",
        "Bind a datastream of the store to a name; what is bound never changes.",
        _json("It is bound.", schemas.BINDING, 201), writing.bind, body=schemas.NEW_BINDING,
        scopes=("series:NAME", "store"), tag="names", refusals=(400, 403, 404, 409, 415, 422),
    ),
    Operation(
        "GET", "/api/assertions", "getAssertions", "What was said about a name.",
        _json("The statements, from the most general subject to the most specific.",
              schemas.ASSERTIONS),
        reading.get_assertions,
        (
            Parameter("subject", schemas.NAME, "A PDI, a part, an interval or a series.", True),
            Parameter("predicate", text(200), "Only this one."),
            Parameter("inherited", {"type": "boolean"}, "Also what holds for all above."),
        ),
        tag="names", refusals=_READ,
    ),
    Operation(
        "POST", "/api/assertions", "addAssertion",
        "Say something about a name, as the holder of the token; it is never taken back.",
        _json("It is said.", schemas.ASSERTION, 201), writing.add_assertion,
        body=schemas.NEW_ASSERTION, scopes=("describe", "series:NAME", "store"), tag="names",
        refusals=(400, 403, 404, 415, 422),
    ),
    Operation(
        "GET", "/api/citations", "cite", "A document or a part of one, cited in words.",
        _json("The citation.", schemas.CITATION), reading.get_citation, (_PDI_ID,), tag="names",
        refusals=(*_READ, 501),
    ),
    Operation(
        "GET", "/api/quotations", "checkQuotation",
        "Whether a document holds what it cites: PDI@POSITION=PDI#PART.",
        _json("What was found.", schemas.QUOTATION), reading.get_quotation, (_PDI_ID,), tag="names",
        refusals=(*_READ, 501),
    ),
    Operation(
        "GET", "/api/registry", "getRegistry", "The registry: every entry, series and scheme.",
        _json("The registry.", schemas.REGISTRY), reading.get_registry, tag="registry",
        refusals=(400,),
    ),
    Operation(
        "GET", "/api/registry/{kind}/{name}", "getEntry", "An entry, and what happened to it.",
        _json("The entry.", schemas.ENTRY), reading.get_entry, (_KIND, _ENTRY), tag="registry",
        refusals=(400, 404),
    ),
    *(
        Operation(
            "POST", f"/api/registry/{{kind}}/{{name}}/{action}", f"registry-{action}", about,
            _json("The entry afterwards.", schemas.ENTRY), writing.act(action), (_KIND, _ENTRY),
            schemas.REGISTRY_ACTS[action], ("registry",), "registry",
            (400, 403, 404, 409, 415, 422),
        )
        for action, about in _ACTS.items()
    ),
    Operation(
        "GET", "/pdi/{series}/{year}/{month}/{day}/{specifier}", "getDocument",
        "The document that a PDI names; without a version the latest.",
        {200: Answer("The document.", _OCTETS, "*/*", ("Content-Location",))}, None, _PDI,
        tag="documents", refusals=(*_READ, 406, 410, 451),
    ),
    Operation(
        "PUT", "/pdi/{series}/{year}/{month}/{day}/{specifier}", "putVersion",
        "Keep the body as the next version of a document. `If-Match` names the version that was "
        "read; `Link: <PDI>; rel=\"alternate\"` adds a format to it instead; `Content-Digest` is "
        "checked. DELETE is 405.",
        {201: _DEPOSITED}, None, (*_PDI, _MATCH, _AGAIN), scopes=("series:NAME", "store"),
        tag="documents",
        refusals=(400, 403, 404, 405, 408, 409, 410, 412, 413, 415, 422), raw_body=_KINDS,
    ),
    Operation(
        "PUT", "/pdi/{series}/", "putDocument",
        "Keep the body as a new document, and give it a name in the series: of any media type but "
        "multipart; SIARD archives (application/x-siard) are opened and described.",
        {201: _DEPOSITED}, None, (_SERIES, _AGAIN), scopes=("series:NAME", "store"),
        tag="documents",
        refusals=(400, 403, 405, 408, 413, 415, 422), raw_body=_KINDS,
    ),
)  # fmt: skip
