"""The names of the generated commands, where they are not those of their operations.

``users_create`` of the group ``users`` is ``users create``. ``get`` is ``show``; ``get_index``
and ``list_history`` are ``index`` and ``history``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from ..operations import Operation
from .parameters import label_of

GROUPS = {
    "access": "Explain why requests are allowed or refused.",
    "api-keys": "Create, list and revoke the credentials of services.",
    "audit": "Show who changed what.",
    "billing": "Connect billing providers, map prices and customers.",
    "billing customers": "List and set the tenants of customers at billing providers.",
    "billing providers": "List the billing providers, and start a comparison with one.",
    "billing prices": "List, set and delete the plans that prices give.",
    "credits": "Grant and revoke credits; show balances and the ledger.",
    "custom-fields": "Define, change and archive custom fields.",
    "domains": "Verify domains, and let people join by them.",
    "emails": "Show e-mail events, and keep the suppression list.",
    "events": "Read the event feed.",
    "flags": "List and explain a tenant's flags; change overrides.",
    "history": "Show, compare and explain the past of a tenant.",
    "imports": "Queue, check, list and show imports.",
    "invitations": "Invite people, resend and revoke invitations.",
    "jobs": "Inspect background work.",
    "join-requests": "Accept or decline people whom a domain suggests.",
    "log-streams": "Write events to other systems continuously.",
    "memberships": "List, create and end memberships; change roles.",
    "ofrep": "Evaluate flags as OpenFeature's providers do.",
    "operations": "Show what wants attention, and what the checks find.",
    "permissions": "List, set and delete permissions of the product.",
    "plans": "List, create, change and delete plan presets.",
    "privacy": "Export what one tenant stores about a user.",
    "resources": "List, set and delete names of things of the product.",
    "rewinds": "Take a tenant back to an earlier moment.",
    "role-assignments": "Give roles to members, groups and API keys.",
    "roles": "List, create, change and delete roles.",
    "scim": "Create, change and delete SCIM connections.",
    "setup-links": "Create, list and revoke setup links.",
    "search": "Find tenants, users and more: search QUERY.",
    "sso-connections": "Show connections to companies' own sign-in.",
    "subscriptions": "List, create, change and cancel subscriptions.",
    "tenants": "Create, change, suspend and delete tenants.",
    "tenants plan": "Show what decides a tenant's plan, and assign one.",
    "usage": "Show and correct what tenants use of their limits.",
    "usage holds": "Hold amounts of limits, and settle or release them.",
    "usage leases": "Lend amounts of limits to clients, and report what they use.",
    "users": "Create, change, deactivate and erase users.",
    "webhook-endpoints": "Send events to other systems by webhooks.",
    "webhooks": "Show received webhooks, and apply them again.",
}
"""The help of each group that has operations."""

GROUP_OF = {
    "identity": "memberships",
    "operations_state": "operations",
    "scim_connection_tests": "scim",
    "scim_connections": "scim",
    "tenant_plans": "tenants plan",
    "webhook_deliveries": "webhook-endpoints",
    "webhook_endpoint_deliveries": "webhook-endpoints",
    "webhook_events": "webhooks",
}
"""The group of a tag that has another name."""

WHERE_TO_BEGIN = """\b
Where to begin:
  search QUERY                   find a customer, a person, a subscription
  tenants, users, memberships    customers and their people
  plans, flags, usage, credits   what a customer may use
  access, roles, api-keys        who may do what, and why
  audit, history, rewinds        who changed what; earlier states
  webhook-endpoints, webhooks    events to and from other systems
  operations work                what wants attention
docs/tasks.md has the command of each task."""

NEWEST_FIRST = 'order?="-created_at"'

COMMANDS: dict[str, tuple[str, ...]] = {
    "access_explain": ("access explain PERMISSION", "history explain PERMISSION AS_OF"),
    "audit_list_events": (
        f"audit list {NEWEST_FIRST}",
        f"audit history TARGET_TYPE TARGET_ID {NEWEST_FIRST}",
    ),
    "audit_list_events_as_csv": ("audit csv",),
    "billing_customers_list_waiting_customers": ("billing customers waiting",),
    "credits_get_grant": ("credits show-grant",),
    "custom_fields_restore": ("custom-fields restore confirm=true",),
    "custom_fields_create": ('custom-fields create entity_type?="user"',),
    "domains_create": ("domains create NAME",),
    "emails_lift_suppression": ("emails lift",),
    "emails_list_events": (f"emails events {NEWEST_FIRST}",),
    "flags_create_override": ("flags override TENANT_ID FLAG_KEY FLAG_VALUE",),
    "flags_export_flagd": ("flags export",),
    "flags_explain": ("flags explain TENANT_ID KEY",),
    "flags_get_override": ("flags show-override",),
    "flags_update_override": ("flags update-override OVERRIDE_ID FLAG_VALUE",),
    "imports_list": (f"imports list {NEWEST_FIRST}",),
    "memberships_set_active": (
        "memberships activate is_active=true",
        "memberships deactivate is_active=false",
    ),
    "memberships_set_role": ("memberships set-role ROLE",),
    "operations_state_get_queues": ("jobs stats",),
    "privacy_request_erasure": ("users delete",),
    "rewinds_create": ("rewinds create TENANT_ID TO",),
    "search_find": ("search for Q...",),
    "history_list_changes": ("history diff TENANT_ID FROM",),
    "tenant_plans_assign": ("tenants plan set PLAN_NAME",),
    "tenant_plans_explain": ("tenants plan show",),
    "tenant_plans_withdraw": ("tenants plan clear",),
    "tenants_get": ("tenants show", "history show TENANT_ID AS_OF"),
    "tenants_get_meta_data": ("tenants show-meta-data",),
    "tenants_request_deletion": ("tenants delete",),
    "tenants_patch_meta_data": ("tenants patch-meta-data PATCHES",),
    "tenants_set_active": ("tenants activate is_active=true",),
    "usage_correct": (
        "usage set TENANT_ID FEATURE USED",
        'usage reset TENANT_ID FEATURE used=0 reason?="Reset"',
    ),
    "usage_holds_create": ("usage holds create FEATURE AMOUNT",),
    "usage_holds_extend": ("usage holds extend HOLD_ID TTL_SECONDS",),
    "usage_holds_settle": ("usage holds settle HOLD_ID AMOUNT",),
    "usage_leases_create": ("usage leases create FEATURE AMOUNT",),
    "usage_leases_renew": ("usage leases renew LEASE_ID USED",),
    "usage_list": ("usage show TENANT_ID",),
    "users_patch_meta_data": ("users patch-meta-data PATCHES",),
    "users_update": (
        "users update",
        "users activate is_active=true",
        "users deactivate is_active=false",
    ),
    "webhook_events_list": (f"webhooks list {NEWEST_FIRST}",),
    "webhook_endpoint_deliveries_list": ("webhook-endpoints deliveries",),
    "webhook_endpoint_deliveries_send_test": ('webhook-endpoints test type?="tenant.updated"',),
    "webhook_endpoints_create": ('webhook-endpoints create URL types?=["*"]',),
}
"""The commands of an operation: its words, its positional arguments, and values in JSON.

``name=value`` is fixed, ``name?=value`` a default. The arguments of the path are positional, before
the others, unless they are named here.
"""

SUMMARIES = {
    "audit history": "List the recorded changes of one row",
    "custom-fields restore": "Restore an archived custom field",
    "history explain": "Explain whether somebody had a permission at an earlier moment",
    "history show": "Show a tenant as it was at an earlier moment",
    "memberships activate": "Activate a membership that has ended",
    "memberships deactivate": "End a membership",
    "tenants activate": "Activate a suspended tenant",
    "usage reset": "Set what a tenant has used of a limit in the current period to 0",
    "users activate": "Activate a user",
    "users deactivate": "Deactivate a user",
}
"""What commands do, where it is a part of what their operation does."""

WITHOUT_A_WORD = {"search": "for"}  # the command of a group that needs no word
PREVIEWED = {"rewinds_create"}  # with `dry_run`, true by default
CONFIRMED = {"tenants_request_deletion": "slug"}  # a field of the body that repeats one of the row
PRINTED_AS_JSON = {"flags_export_flagd", "privacy_export"}  # for people, too
ABBREVIATIONS = {"api": "API", "ofrep": "OFREP", "scim": "SCIM", "sso": "SSO"}


@dataclass(frozen=True)
class Spelling:
    """How one command of an operation is written."""

    words: tuple[str, ...]
    positional: tuple[str, ...]
    fixed: dict[str, Any]
    defaults: dict[str, Any]
    takes_words: bool = False  # the last positional argument is the rest of the line


def spellings(operation: Operation) -> Iterator[Spelling]:
    """The commands of an operation; a public one has none."""
    if operation.permission is None:
        return
    for text in COMMANDS.get(operation.name, (_default(operation),)):
        parts = text.split()
        pairs = [one.split("=", 1) for one in parts if "=" in one]
        values = {name: json.loads(value) for name, value in pairs}
        words = tuple(one for one in parts if one.islower() and "=" not in one)
        named = [one.removesuffix("...").lower() for one in parts if one.isupper()]
        path = operation.names_in("path")
        yield Spelling(
            words,
            (*(one for one in path if one not in named), *named),
            {name: value for name, value in values.items() if not name.endswith("?")},
            {name[:-1]: value for name, value in values.items() if name.endswith("?")},
            takes_words=text.endswith("..."),
        )


def command_of(url: str, known: list[Operation]) -> str:
    """The command that shows what the path and query do; includes are left out."""
    path, _, query = url.partition("?")
    reading = (one for one in known if one.is_reading)
    matches = ((one, re.fullmatch(re.sub("{.+?}", "([^/]+)", one.path), path)) for one in reading)
    operation, ids = next((one, match.groups()) for one, match in matches if match)
    labels = {one.name: label_of(one, is_positional=False) for one in operation.arguments}
    given = [f"{labels[name]} {value}" for name, value in parse_qsl(query) if name != "include"]
    words = " ".join([*next(spellings(operation)).words, *ids, *given])
    return words.replace(" true", "")


def _default(operation: Operation) -> str:
    verb = operation.name.removeprefix(f"{operation.group}_")
    for start in ("get_", "list_"):
        verb = verb.removeprefix(start)
    verb = "show" if verb == "get" else verb.replace("_", "-")
    spaced = operation.group.replace("_", " ")
    group = spaced if spaced in GROUPS else GROUP_OF.get(operation.group, spaced.replace(" ", "-"))
    return f"{group} {verb}"
