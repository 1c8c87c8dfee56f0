"""The schemas of SCIM 1, which some directories (OneLogin) still send, as those of SCIM 2."""

from __future__ import annotations

CORE = "urn:ietf:params:scim:schemas:core:2.0:"
OLD_CORE = "urn:scim:schemas:core:1.0"
OLD_ENTERPRISE = "urn:scim:schemas:extension:enterprise:1.0"
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"


def as_standard(body: object, resource_name: str) -> object:
    """The body of a request for a resource type, with the schemas of SCIM 2."""
    if not isinstance(body, dict):
        return body
    changed = {ENTERPRISE if name == OLD_ENTERPRISE else name: body[name] for name in body}
    schemas = changed.get("schemas")
    if isinstance(schemas, list):
        renamed = {OLD_CORE: f"{CORE}{resource_name}", CORE: f"{CORE}{resource_name}"}
        renamed[OLD_ENTERPRISE] = ENTERPRISE
        changed["schemas"] = [
            renamed.get(one, one) if isinstance(one, str) else one for one in schemas
        ]
    return changed
