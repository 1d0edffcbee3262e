"""The OpenAPI 3.1 document, made from the same operations that answer."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from muniment import __version__
from muniment.repository.tokens import SCOPES
from muniment.web.api.operations import Answer, Operation
from muniment.web.api.schemas import PROBLEM

__all__ = ["document"]

_ABOUT = (
    "Read what a store keeps, and with a token write to it. Harvesting (OAI-PMH at /oai), links "
    "(OpenURL at /openurl), resolution (THTTP at /uri-res) and versions by date (Memento) follow "
    "their own standards. Refusals are problem details (RFC 9457)."
)
_TAGS = {
    "store": "The store and its objects.",
    "names": "PDIs: resolved, minted, bound; what is said of them.",
    "registry": "Namespaces, series and fragment schemes.",
    "documents": "PDIs as addresses.",
    "operators": "For those who run the server.",
}
_PROBLEM = {"$ref": "#/components/responses/Problem"}


def document(operations: Sequence[Operation], series: Sequence[str] = ()) -> dict[str, Any]:
    """Return the document; ``series`` are those in which documents can be put."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        facts = _operation(operation)
        paths.setdefault(operation.path, {})[operation.method.lower()] = facts
        for parameter in facts.get("parameters", ()):
            if series and operation.method == "PUT" and parameter["name"] == "series":
                parameter["schema"] = {"type": "string", "enum": list(series)}
    scopes = "; ".join(f"`{name}`: {about}" for name, about in SCOPES.items())
    return {
        "openapi": "3.1.0",
        "info": {"title": "Muniment", "version": __version__, "description": _ABOUT},
        "servers": [{"url": "/"}],  # where this document is
        "tags": [{"name": name, "description": about} for name, about in _TAGS.items()],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": f"Made with `muniment token create`. Scopes: {scopes}.",
                }
            },
            "schemas": {"Problem": PROBLEM},
            "responses": {
                "Problem": {
                    "description": "It was refused; `title` says why.",
                    "content": {
                        "application/problem+json": {"schema": {"$ref": _schema("Problem")}}
                    },
                }
            },
        },
    }


def _schema(name: str) -> str:
    return f"#/components/schemas/{name}"


def _operation(operation: Operation) -> dict[str, Any]:
    scopes = f" Scope: {' or '.join(operation.scopes)}." if operation.scopes else ""
    facts: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.tag],
        "summary": operation.about.partition(": ")[0].rstrip("."),
        "description": operation.about + scopes,
        "responses": _answers(operation),
        "security": [{"token": []}] if operation.scopes else [{}, {"token": []}],
    }
    if operation.parameters:
        facts["parameters"] = [
            {
                "name": each.name, "in": each.place, "required": each.required,
                "description": each.about, "schema": each.schema,
            }
            for each in operation.parameters
        ]  # fmt: skip
    if operation.body is not None:
        content = {"application/json": {"schema": operation.body}}
        facts["requestBody"] = {"required": True, "content": content}
    elif operation.raw_body:
        content = {kind: {} for kind in operation.raw_body}
        facts["requestBody"] = {"required": True, "content": content}
    return facts


def _answers(operation: Operation) -> dict[str, Any]:
    answers = {str(status): _answer(answer) for status, answer in operation.answers.items()}
    refusals = {*operation.refusals, 503, *((401,) if operation.scopes else ())}
    # Any request may carry a token, and one that is not valid is refused.
    for status in sorted({*refusals, 401}):
        answers[str(status)] = {**_refusal(status)}
    return {**answers, "default": _PROBLEM}


def _refusal(status: int) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"$ref": _schema("Problem")}}}
    refusal: dict[str, Any] = {"description": HTTPStatus(status).phrase, "content": content}
    header = {401: "WWW-Authenticate", 405: "Allow", 503: "Retry-After"}.get(status)
    if header:
        refusal["headers"] = {header: {"schema": {"type": "string"}}}
    return refusal


def _answer(answer: Answer) -> dict[str, Any]:
    facts: dict[str, Any] = {"description": answer.about}
    if answer.schema is not None:
        facts["content"] = {answer.media: {"schema": answer.schema} if answer.schema else {}}
    if answer.links:
        facts["links"] = {
            name: {"operationId": to, "parameters": {parameter: value}}
            for name, (to, parameter, value) in answer.links.items()
        }
    if answer.headers:
        facts["headers"] = {
            name: {"required": True, "schema": {"type": "string"}} for name in answer.headers
        }
    return facts
