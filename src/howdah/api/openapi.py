"""The OpenAPI document of all calls, made from the table that the router uses, so that it is complete."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any

from howdah.api import schemas
from howdah.api.answer_shapes import find_shape
from howdah.api.routes import ACTIONS, PREFIX, ROUTES, SINCE, Action, Parameter, Route

INTRODUCTION = """The calls that the page uses, for programs. Every call needs the token of the job's link, as `?token=`
or in the header `Howdah-Token`, unless the browser's cookie or the cluster's proxy vouches for the caller. Times are
epoch seconds. Repeat a call whose answer has a `version` with `since=` that version; if nothing has changed, the answer
is `{"version": V, "unchanged": true}`. An error is `{"error": "one line", "place": "the parameter that is wrong"}`; if
the token is missing, the error also has the `command` that prints a link. Sentences for people (format
`sentence`) are Chinese if `Accept-Language` prefers `zh`, otherwise English."""
_PLACES = {
    "job": "The job's id.",
    "task": "A task, such as worker:0.",
    "rest": "The rest of the path.",
    "action": "The action.",
}
_SIMPLE: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def openapi() -> dict[str, Any]:
    """Return the whole document (OpenAPI 3.1)."""
    error = {name: _text() for name in ("error", "place", "command")}
    error["error"]["format"] = "sentence"
    named: dict[str, Any] = {"Error": {"type": "object", "properties": error, "required": ["error", "place"]}}
    paths: dict[str, Any] = {f"{PREFIX}{call.path}": {"get": _operation(call, named)} for call in ROUTES}
    paths[f"{PREFIX}session"]["put"] = _session(named)
    for action in ACTIONS:
        paths[f"{PREFIX}jobs/{{job}}/actions/{action.name}"] = {
            method: {"operationId": f"{method}_{_name(action.name)}", **_action_body(action, named)}
            for method in ("put", "post")
        }
    token = {"type": "apiKey", "name": "token", "in": "query"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "howdah", "version": "v1", "description": INTRODUCTION},
        "paths": paths,
        "components": {"schemas": dict(sorted(named.items())), "securitySchemes": {"token": token}},
        "security": [{"token": []}],
    }


def _operation(call: Route, named: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": "The answer."}
    if "/" in call.answer:
        answer["content"] = {call.answer: {}}
    elif call.answer:
        schema = _shape(call.answer, named)
        if call.cached:
            version = {"type": "object", "properties": {"version": {"type": "integer"}}, "required": ["version"]}
            schema = {"allOf": [version, schema]}
        if SINCE in call.parameters:
            schema = {"anyOf": [schema, _shape("Unchanged", named)]}
        answer["content"] = {"application/json": {"schema": schema}}
    return {
        "operationId": _name(call.path),
        "tags": [_tag(call.path)],
        "summary": call.summary,
        "parameters": [*_path_parameters(call.path), *map(_parameter, call.parameters)],
        "responses": {"200": answer, **_errors()},
    }


def _name(path: str) -> str:
    """Return the operation's name for generators of clients: `job`, `tasks`, `curves_scalars_svg`."""
    if path == "jobs/{job}":
        return "job"
    parts = [part for part in path.removeprefix("jobs/{job}/").split("/") if not part.startswith("{")]
    return "_".join(parts).replace(".", "_")


def _tag(path: str) -> str:
    below = path.removeprefix("jobs/{job}/").partition("/")[0]
    return below if below in ("curves", "checkpoints", "logs") else "jobs" if path.startswith("jobs") else "server"


def _action_body(action: Action, named: dict[str, Any]) -> dict[str, Any]:
    words = {each.name: _argument(each) for each in action.words}
    token = {"type": "string", "description": "A token that may act, from the link that `howdah page` prints."}
    answer = {"application/json": {"schema": _shape(action.answer, named)}}
    body = {"type": "object", "properties": {"token": token, **words}, "required": ["token"]}
    return {
        "tags": ["actions"],
        "summary": action.summary,
        "parameters": list(_path_parameters("{job}")),
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {"200": {"description": "The action is done, or has begun.", "content": answer}, **_errors()},
    }


def _argument(word: Parameter) -> dict[str, Any]:
    items = {"items": _text()} if word.kind == "array" else {}
    return {"type": word.kind, "description": word.summary, **items}


def _session(named: dict[str, Any]) -> dict[str, Any]:
    """Return the call by which browsers exchange a token for a cookie."""
    token = {"type": "string", "description": "The token of the link."}
    body = {"type": "object", "properties": {"token": token}, "required": ["token"]}
    content = {"application/json": {"schema": _shape("PagePlace", named)}}
    return {
        "operationId": "open_session",
        "tags": ["server"],
        "summary": "Exchange the token of a link for a cookie that lets a browser view the page without the token.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {"200": {"description": "The answer sets the cookie.", "content": content}, **_errors()},
    }


def _path_parameters(path: str) -> list[dict[str, Any]]:
    names = [part.strip("{}") for part in path.split("/") if part.startswith("{")]
    return [
        {"name": name, "in": "path", "required": True, "description": _PLACES[name], "schema": _text()}
        for name in names
    ]


def _parameter(parameter: Parameter) -> dict[str, Any]:
    items = {"items": _text()} if parameter.kind == "array" else {}
    return {
        "name": parameter.name,
        "in": "query",
        "description": parameter.summary,
        "schema": {"type": parameter.kind, **items},
    }


def _errors() -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    says = {"4XX": "The request is refused.", "5XX": "The answer is not available now."}
    return {status: {"description": text, "content": content} for status, text in says.items()}


def _text() -> dict[str, Any]:
    return {"type": "string"}


def _shape(name: str, named: dict[str, Any]) -> dict[str, Any]:
    """Return the shape of the record of this name."""
    return _schema(find_shape(name), named)


def _schema(kind: Any, named: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a type that `schemas` uses; records are added to `named`."""
    if kind is Any:
        return {}
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return _annotated_schema(arguments[0], arguments[1], named)
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0], named)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1], named)}
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [{"type": "null"} if each is type(None) else _schema(each, named) for each in arguments]}
    if kind.__name__ not in named:
        _record(kind, named)
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _annotated_schema(kind: Any, annotation: Any, named: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of `kind` with its annotation."""
    if isinstance(annotation, schemas.Columns):
        items = [_schema(each, named) for each in annotation.kinds]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items), "maxItems": len(items)}
    limits = (
        {"enum": [*annotation.values]} if isinstance(annotation, schemas.AllowedValues) else {"format": annotation.name}
    )
    return {**_schema(kind, named), **limits}


def _record(kind: Any, named: dict[str, Any]) -> None:
    found: dict[str, Any] = {"type": "object"}
    named[kind.__name__] = found
    description = (kind.__doc__ or "").strip()
    if description and not description.startswith("dict("):
        found["description"] = " ".join(description.split())
    fields = typing.get_type_hints(kind, include_extras=True)
    found["properties"] = {name: _schema(each, named) for name, each in fields.items()}
    found["required"] = sorted(kind.__required_keys__)
