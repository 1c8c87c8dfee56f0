"""Decides which actions of the audit trail are published as events.

Every action is either in :data:`EVENT_TYPES` or in :data:`INTERNAL`.
"""

from __future__ import annotations

from app.audit.event_types import DESCRIBED

EVENT_TYPES = {
    "override.carried_over": "override.updated",
    "plan_preset.created": "plan.created",
    "plan_preset.deleted": "plan.deleted",
    "plan_preset.updated": "plan.updated",
    "suppression.added": "email.suppressed",
    **{name: name for name in DESCRIBED if not name.startswith(("plan.", "email."))},
}
"""Action of the audit trail -> type of its event."""

ALL_TYPES = frozenset(DESCRIBED)
_KINDS = sorted({f"{each.partition('.')[0]}.*" for each in ALL_TYPES})
NO_SUCH_TYPE = f"no event has this type; there are {', '.join(_KINDS)}"


def types_of(pattern: str) -> list[str]:
    """The event types that match a pattern: one type, or a prefix and ``*``."""
    if pattern.endswith("*"):
        return [known for known in ALL_TYPES if known.startswith(pattern[:-1])]
    return [pattern] if pattern in ALL_TYPES else []


INTERNAL = {
    "audit_events.dropped": "The trail became shorter; no resource has changed.",
    "billing_comparison.started": "It reads; what it repairs has events of its own.",
    "billing_customer.deleted": "It is a setting; the subscriptions that follow have events.",
    "billing_customer.mapped": "The same.",
    "console.link_created": "It is a way to sign in; what the person changes has events of its own.",
    "domain.check_requested": "The check that follows has an event of its own.",
    "domain.created": "Nothing follows from a domain before it is verified.",
    "domain.deleted": "It is a setting; members stay.",
    "domain.updated": "It is a setting; the people whom it lets in have events.",
    "import.completed": "What an import changes has events of its own.",
    "import.created": "The same.",
    "import.failed": "The same.",
    "log_stream.tested": "The test leaves nothing; the stream shows its result.",
    "plan_price.created": "It is a setting; the subscriptions that it changes have events.",
    "plan_price.deleted": "The same.",
    "plan_price.updated": "The same.",
    "platform_admin.added": "It says who operates the platform, which is nobody else's business.",
    "platform_admin.removed": "The same.",
    "rewind.completed": "What a rewind changes has events of its own.",
    "rewind.created": "The same.",
    "rewind.failed": "The same.",
    "scim_connection.created": "It is a credential's setting; the people it changes have events.",
    "scim_connection.deleted": "The same.",
    "scim_connection.rotated": "The same.",
    "scim_connection.updated": "The same.",
    "scim_group.created": "Groups are the directory's; the roles that they give have events.",
    "scim_group.deleted": "The same.",
    "scim_group.updated": "The same.",
    "setup_link.created": "It is a way in; what it changes has events and audit rows of its own.",
    "setup_link.opened": "The same.",
    "setup_link.revoked": "The same.",
    "suppression.lifted": "Nothing has happened to a message; the suppression list shows it.",
    "tenant.plan_assigned": "tenant.plan_changed tells what follows from it.",
    "tenant.plan_withdrawn": "The same.",
    "tenant.notes_changed": "They are the platform's own, and nobody else's business.",
    "tenant.idp_org_id_freed": "The tenant is gone; tenant.deleted has told it.",
    "usage.corrected": "It is a count, not a resource; limit.* tell what follows from it.",
    "user.exported": "Somebody has read what is stored; nothing has changed.",
    "user.erasure_requested": "The user is deactivated; user.erased tells when they are erased.",
    "webhook_endpoint.created": "Who delivers to whom is no fact about the tenant's data.",
    "webhook_endpoint.deleted": "The same.",
    "webhook_endpoint.delivery_resent": "The same.",
    "webhook_endpoint.recovered": "The same.",
    "webhook_endpoint.secret_rotated": "The same.",
    "webhook_endpoint.tested": "The same.",
    "webhook_endpoint.updated": "The same.",
    "webhook_event.replayed": "What the replayed event changes has events of its own.",
}
"""Action that is not published as an event -> the reason."""

TARGET_TYPE_OF = {
    action: "tenant" if action.startswith("trial.") else action.partition(".")[0]
    for action in (*EVENT_TYPES, *INTERNAL)
}
"""Action -> type of the row that it changes."""
TARGET_TYPES = sorted({*TARGET_TYPE_OF.values()})
