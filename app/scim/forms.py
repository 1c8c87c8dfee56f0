"""What directories send that neither the RFCs nor `scim2-models` allow, as the RFCs have it."""

from __future__ import annotations

from typing import Any

CORE = "urn:ietf:params:scim:schemas:core:2.0:"
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
OLD_SCHEMAS = {
    "urn:scim:schemas:core:1.0": CORE,
    "urn:scim:schemas:extension:enterprise:1.0": ENTERPRISE,
}
MANAGER = f"{ENTERPRISE}:manager".lower()
PATCH_OPERATIONS = "operations"


def as_standard(body: Any, resource_name: str) -> Any:
    """The body of a request for a resource type, changed in these ways:

    - The schemas of SCIM 1 are those of SCIM 2 (OneLogin).
    - A manager that is only an id is ``{"value": id}`` (Entra).
    """
    if not isinstance(body, dict):
        return body
    changed = {_new_name(name): value for name, value in body.items()}
    schemas = changed.get("schemas")
    if isinstance(schemas, list):
        changed["schemas"] = [_new_schema(one, resource_name) for one in schemas]
    for name, value in changed.items():
        if name.lower() == ENTERPRISE.lower():
            changed[name] = _with_manager(value)
        elif name.lower() == PATCH_OPERATIONS and isinstance(value, list):
            changed[name] = [_standard_operation(one) for one in value]
    return changed


def _new_name(name: str) -> str:
    return OLD_SCHEMAS.get(name, name)


def _new_schema(schema: Any, resource_name: str) -> Any:
    new = OLD_SCHEMAS.get(schema, schema) if isinstance(schema, str) else schema
    return f"{CORE}{resource_name}" if new == CORE else new


def _standard_operation(operation: Any) -> Any:
    if not isinstance(operation, dict):
        return operation
    path, value = operation.get("path"), operation.get("value")
    if isinstance(path, str) and path.lower() == MANAGER:
        return {**operation, "value": _manager(value)}
    if isinstance(path, str) and path.lower() == ENTERPRISE.lower():
        return {**operation, "value": _with_manager(value)}
    if path is None and isinstance(value, dict):
        return {**operation, "value": _standard_values(value)}
    return operation


def _standard_values(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _manager(value)
        if name.lower() == MANAGER
        else _with_manager(value)
        if name.lower() == ENTERPRISE.lower()
        else value
        for name, value in values.items()
    }


def _with_manager(extension: Any) -> Any:
    if not isinstance(extension, dict):
        return extension
    return {
        name: _manager(value) if name.lower() == "manager" else value
        for name, value in extension.items()
    }


def _manager(value: Any) -> Any:
    """The manager as an object; an empty id is none."""
    if isinstance(value, str):
        return {"value": value} if value else None
    return value
