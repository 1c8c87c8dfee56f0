"""The descriptions of schemas and fields in the OpenAPI document.

The first paragraph of its docstring describes a schema or an enumeration. A field is described by
its own ``description``, else by its schema's ``descriptions``, else by :data:`COMMON`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

from apispec import BasePlugin
from flask_smorest.utils import resolve_schema_instance

from app.core.openapi.responses import RESOURCES

ACTORS = (
    "a user's id, `platform:<subject>`, `key:<API key's id>`, `scim:<connection's id>`, "
    "`invitation:<invitation's id>`, `system:<part of the service>` or `cli:<user of the operating system>`"
)

COMMON: Mapping[str, str] = {
    "action": "What was done, such as `user.updated`.",
    "actor": f"Who did it: {ACTORS}.",
    "created_at": "When it was created (UTC).",
    "created_by_user_id": f"Who created it: {ACTORS}.",
    "feature": "The key of the limit.",
    "flag_key": "The key by which programs ask for the flag.",
    "flag_type": "The type of the flag's values.",
    "id": "Its id, a UUID that the service gives and that never changes.",
    "idp_org_id": "The identity provider's id of the tenant's organization.",
    "plan_name": "The name of the plan.",
    "policy": "Whether more than the limit is refused (`hard`) or counted (`soft`).",
    "request_id": "The `X-Request-Id` of the request or job that did it; empty without one.",
    "tenant_id": "The tenant that it belongs to.",
    "updated_at": "When it was last changed (UTC).",
    "updated_by_user_id": f"Who last changed it: {ACTORS}.",
    "user_id": "The user.",
    "version": "Grows by one with each change.",
}
"""Descriptions of fields that many resources have."""

PATH_PARAMETERS: Mapping[str, str] = {
    "address": "The e-mail address.",
    "evt_id": "The id of the event: `evt_…`.",
    "feature": "The key of the limit.",
    "key": "The key of the flag.",
    "lot_id": "The id of the lot of credits.",
    "permission_key": "The key of the permission.",
    "provider": "The billing provider, such as `stripe`.",
    "resource_type": "The type of the resource.",
    "tenant_id": "The id of the tenant, its `idp_org_id` or its slug.",
}
"""Descriptions of path parameters; others are ids of resources."""

COMPONENT_NAMES: Mapping[str, str] = {
    "Cause": "SuppressionCause", "Change": "HistoryChange", "Consume": "UsageConsumption",
    "Correction": "UsageCorrection", "Deactivate": "ScimDeactivation",
    "Decision": "UsageDecision", "Entry": "UsageEntry", "Kind": "IdentityKind",
    "Layer": "FlagLayer", "Level": "FindingLevel", "Order": "CustomFieldOrder",
    "Outcome": "AccessStepOutcome", "Period": "LimitPeriod", "Policy": "LimitPolicy",
    "Queues": "QueueState", "Signing": "WebhookSigning", "Status": "WebhookEventStatus",
    "Step": "AccessStep", "Valid": "CustomFieldCheck", "Values": "CustomFieldValues",
    "Waiting": "WaitingIdentity",
}  # fmt: skip
"""Class name -> name in the document, for classes whose name is unclear outside their package."""
WRAPPERS = re.compile(r"(WithIncludes)?(Answer|List)?$")


def noun(resource: str) -> str:
    """The words for a resource, such as ``API key`` for ``api_key``."""
    return re.sub("^(api|scim|sso) ", lambda found: found[0].upper(), resource.replace("_", " "))


def component_name(schema: Any) -> str:
    """The name of a schema or an enumeration in the document and in generated clients."""
    described = schema if inspect.isclass(schema) else type(resolve_schema_instance(schema))
    name = described.__name__.removesuffix("Schema")
    base = WRAPPERS.sub("", name)
    return COMPONENT_NAMES.get(base, base) + name[len(base) :]


class SchemaDescriptions(BasePlugin):
    """Describes each schema by its docstring."""

    def schema_helper(
        self, name: str, definition: dict[str, Any], **options: Any
    ) -> dict[str, str]:
        schema = options.get("schema")
        text = "" if schema is None else summary(type(resolve_schema_instance(schema)))
        return {"description": text} if text else {}


def summary(documented: Any) -> str:
    """The first paragraph of a class's docstring, as Markdown; empty if there is none."""
    paragraph = inspect.cleandoc(documented.__doc__ or "").partition("\n\n")[0]
    return paragraph.replace("\n", " ").replace("``", "`")


def with_description(converter: Any, field: Any, ret: dict[str, Any]) -> dict[str, Any]:
    """For a field without a ``description``, that of its schema or of :data:`COMMON`."""
    of_schema = getattr(field.parent, "descriptions", None)
    if "description" in ret or of_schema is None:
        return {}
    text = of_schema.get(field.name) or COMMON.get(field.name)
    return {"description": text} if text else {}


def describe_paths(document: dict[str, Any]) -> None:
    """Describe the path parameters of a document by :data:`PATH_PARAMETERS`."""
    for operations in document["paths"].values():
        for parameter in operations.get("parameters", ()):
            name = parameter["name"]
            resource = noun(RESOURCES.get(name, name.removesuffix("_id")))
            parameter["description"] = PATH_PARAMETERS.get(name, f"The id of the {resource}.")
