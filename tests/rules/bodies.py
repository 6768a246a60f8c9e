"""Bodies and queries that an operation of the API takes, made from its description."""

from typing import Any

from labsite.api import api
from tests.rules.routes import Route

SCHEMA: dict[str, Any] = api.get_openapi_schema()
# What a name alone does not say: values that the door takes for text and the command would refuse before it looks for anything.
MEANT = {
    "role": "viewer",
    "email": "zoe@lab.example",
    "slug": "made-by-a-rule",
    "due_on": "2027-01-31",
    "name": "NAME",
    "until": "2099-01-31T00:00:00Z",
}


def operation_of(route: Route) -> dict[str, Any]:
    """The route's part of the API's description."""
    path = "/" + route.path.replace("<", "{").replace(">", "}")
    found: dict[str, Any] = SCHEMA["paths"][path][route.method.lower()]
    return found


def shape_of(route: Route) -> dict[str, Any] | None:
    """Schema of the JSON body, None where the operation takes none."""
    content = operation_of(route).get("requestBody", {}).get("content", {})
    return resolved(content["application/json"]["schema"]) if "application/json" in content else None


def valid_body(route: Route) -> Any:
    """The smallest body that the operation's description allows; of a change, every field of it. None where it takes no JSON."""
    shape = shape_of(route)
    return None if shape is None else sample(shape, whole=route.method == "PATCH")


def valid_query(route: Route) -> dict[str, Any]:
    """The query parameters that the operation demands."""
    asked = operation_of(route).get("parameters", [])
    return {one["name"]: sample(one["schema"], name=one["name"]) for one in asked if one["in"] == "query" and one.get("required")}


def resolved(shape: dict[str, Any]) -> dict[str, Any]:
    """The schema behind references and alternatives: the first that is not null."""
    while True:
        if "$ref" in shape:
            shape = SCHEMA["components"]["schemas"][shape["$ref"].rpartition("/")[2]]
        elif alternatives := shape.get("anyOf") or shape.get("oneOf") or shape.get("allOf"):
            shape = next(one for one in alternatives if one.get("type") != "null")
        else:
            return shape


def sample(shape: dict[str, Any], *, name: str = "", whole: bool = False) -> Any:
    """A value that a schema allows; of an object its required fields, or all."""
    shape = resolved(shape)
    if "enum" in shape or "const" in shape:
        return shape["const"] if "const" in shape else shape["enum"][0]
    match shape.get("type"):
        case "object":
            fields = shape.get("properties", {})
            wanted = list(fields) if whole else shape.get("required", [])
            return {key: sample(fields[key], name=key) for key in wanted}
        case "array":
            return [sample(shape["items"], name=name)] if shape.get("minItems") else []
        case "integer" | "number":
            return max(1, shape.get("minimum", 1))
        case "boolean":
            return True
        case "string" if shape.get("pattern") == "^[0-9a-f]{64}$":
            return "0" * 64
        case _:
            text = MEANT.get(name, "abcdefgh")
            return text[: shape.get("maxLength", len(text))]
