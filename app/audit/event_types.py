"""The types of events, a closed list with their texts; app/events/catalogue.py adds the schemas."""

from __future__ import annotations

from collections.abc import Mapping

from app.core.json_text import Json

DESCRIBED: dict[str, tuple[str, Mapping[str, tuple[Json, Json]]]] = {
    "api_key.created": ("An API key was created.", {}),
    "api_key.revoked": ("An API key was revoked.", {"revoked_at": (None, "2026-01-31T12:00:00Z")}),
    "credits.expired": ("Credits of a lot have expired.", {"expired": (None, 700)}),
    "credits.granted": ("Credits were granted, other than by the plan.", {}),
    "credits.revoked": ("Credits were revoked.", {"remaining": (700, 0)}),
    "custom_field.archived": ("A custom field was archived.", {"is_active": (True, False)}),
    "custom_field.created": ("A custom field was created.", {}),
    "custom_field.deleted": ("A custom field was deleted; `data` is what it was.", {}),
    "custom_field.reordered": ("A custom field has a new place.", {"sort_order": (2, 0)}),
    "custom_field.restored": ("A custom field was restored.", {"is_active": (False, True)}),
    "custom_field.updated": ("A custom field was changed.", {"label": ("Centre", "Cost centre")}),
    "domain.failed": (
        "No check has found the record of a domain for 72 hours.",
        {"state": ("pending", "failed"), "error": (None, "no_record")},
    ),
    "domain.lapsed": (
        "A verified domain has lost its record. Its members stay.",
        {"state": ("verified", "lapsed"), "error": (None, "no_record")},
    ),
    "domain.verified": ("A domain was verified.", {"state": ("pending", "verified")}),
    "email.bounced": ("A message was refused permanently.", {}),
    "email.complained": ("A recipient reported a message as spam.", {}),
    "email.suppressed": ("No more e-mail may be sent to an address.", {}),
    "invitation.accepted": (
        "The invited person has become a member.",
        {"accepted_at": (None, "2026-01-31T12:00:00Z")},
    ),
    "invitation.created": ("An address was invited; `data` has the token while it is valid.", {}),
    "invitation.resent": (
        "An invitation has a new token, which `data` has while it is valid.",
        {"expires_at": ("2026-01-31T12:00:00Z", "2026-02-07T12:00:00Z")},
    ),
    "invitation.revoked": (
        "An invitation was revoked.",
        {"revoked_at": (None, "2026-01-31T12:00:00Z")},
    ),
    "join_request.accepted": (
        "A person became a member by a verified domain.",
        {"state": ("pending", "accepted")},
    ),
    "join_request.created": ("A verified domain suggests a person as a member.", {}),
    "join_request.declined": (
        "A suggested person was declined.",
        {"state": ("pending", "declined")},
    ),
    "limit.forecast": ("A limit ends soon at the pace of the last 7 days.", {}),
    "limit.overrun": ("More was used than a hold or lease had, and it did not fit.", {}),
    "limit.reached": ("All of a limit is used.", {}),
    "limit.warning": ("Most of a limit is used.", {}),
    "log_stream.behind": (
        "Events that a log stream has not read will be removed in `LOG_STREAM_DAYS`.",
        {},
    ),
    "log_stream.created": ("A log stream was created.", {}),
    "log_stream.deleted": ("A log stream was deleted; `data` is what it was.", {}),
    "log_stream.failing": (
        "The last attempts of a log stream have failed; `error` says why.",
        {"state": ("active", "error")},
    ),
    "log_stream.paused": ("A log stream was paused.", {"state": ("active", "paused")}),
    "log_stream.refused": (
        "A log stream writes nothing until it is corrected and resumed; `error` says why.",
        {"state": ("active", "invalid")},
    ),
    "log_stream.resumed": (
        "A log stream was resumed, or its target works again.",
        {"state": ("error", "active")},
    ),
    "log_stream.rewound": ("A log stream goes on at another place of the feed.", {}),
    "log_stream.updated": ("A log stream was changed.", {"types": (["*"], ["user.*"])}),
    "membership.activated": ("A membership was activated.", {"is_active": (False, True)}),
    "membership.created": ("A user became a member.", {}),
    "membership.deactivated": ("A membership was ended.", {"is_active": (True, False)}),
    "membership.role_changed": ("A member has another role.", {"role": ("member", "admin")}),
    "membership.updated": (
        "The identity provider changed a membership.",
        {"role": ("member", "admin")},
    ),
    "override.created": ("A feature override was created.", {}),
    "override.deleted": ("A feature override was deleted; `data` is what it was.", {}),
    "override.expired": ("A feature override has ended.", {}),
    "override.updated": ("A feature override was changed.", {"flag_value": (5, 10)}),
    "permission.created": ("A permission of the product was created.", {}),
    "permission.deleted": (
        "A permission of the product was deleted; `data` is what it was.",
        {},
    ),
    "permission.updated": (
        "A permission of the product was changed.",
        {"requires_flag": (None, "invoicing")},
    ),
    "plan.created": ("A plan preset was created.", {}),
    "plan.deleted": ("A plan preset was deleted; `data` is what it was.", {}),
    "plan.updated": ("A plan preset was changed.", {"name": ("growth", "scale")}),
    "resource.created": ("A resource was registered.", {}),
    "resource.deleted": ("A resource was deleted; `data` is what it was.", {}),
    "resource.updated": ("A resource was changed.", {"attributes": ({}, {"status": "open"})}),
    "role.created": ("A role was created.", {}),
    "role.deleted": ("A role was deleted; `data` is what it was.", {}),
    "role.updated": ("A role was changed.", {"permissions": ([], ["invoices:approve"])}),
    "role_assignment.created": ("A role was assigned.", {}),
    "role_assignment.deleted": ("An assigned role was taken away; `data` is what it was.", {}),
    "role_assignment.expired": ("The time of an assigned role is over.", {}),
    "role_assignment.updated": (
        "Another role has replaced the assigned one.",
        {"role": ("accountant", "viewer")},
    ),
    "sso_connection.activated": (
        "An SSO connection can be used.",
        {"state": ("inactive", "active")},
    ),
    "sso_connection.certificate_expiring": (
        "A certificate of an active SSO connection ends within 30 days.",
        {},
    ),
    "sso_connection.deactivated": (
        "An SSO connection cannot be used.",
        {"state": ("active", "inactive")},
    ),
    "sso_connection.deleted": ("An SSO connection was deleted; `data` is what it was.", {}),
    "sso_connection.updated": (
        "The identity provider has created or changed an SSO connection.",
        {"name": ("Okta", "Acme's Okta")},
    ),
    "subscription.canceled": ("A cancellation was recorded.", {"auto_renew": (True, False)}),
    "subscription.created": ("A subscription was created.", {}),
    "subscription.drift_repaired": (
        "A comparison has found that a subscription differed from its billing provider's.",
        {"bp_status": ("active", "past_due")},
    ),
    "subscription.plan_unknown": ("A subscription names a plan that no preset has.", {}),
    "subscription.updated": ("A subscription was changed.", {"bp_status": ("active", "past_due")}),
    "tenant.activated": ("A suspended tenant was activated.", {"is_active": (False, True)}),
    "tenant.created": ("A tenant was created.", {}),
    "tenant.deleted": ("A tenant was deleted; `data` has only what is left of it.", {}),
    "tenant.deletion_requested": (
        "A tenant is suspended, and deleted after `TENANT_GRACE_DAYS`.",
        {"deletes_at": (None, "2026-03-02T12:00:00Z")},
    ),
    "tenant.meta_data_patched": (
        "A tenant's metadata was changed.",
        {"meta_data": ({}, {"segment": "enterprise"})},
    ),
    "tenant.over_seats": (
        "The identity provider added members beyond the plan's seats.",
        {"free_seats": (0, -1)},
    ),
    "tenant.ownerless": ("The identity provider removed a tenant's last active owner.", {}),
    "tenant.plan_changed": ("A tenant has another plan.", {"plan_name": ("free", "growth")}),
    "tenant.restored": (
        "The deletion of a tenant was withdrawn.",
        {"deletes_at": ("2026-03-02T12:00:00Z", None)},
    ),
    "tenant.suspended": ("A tenant was suspended.", {"is_active": (True, False)}),
    "tenant.updated": ("A tenant was changed.", {"name": ("Acme", "Acme Ltd")}),
    "trial.ended": ("An assigned plan has ended.", {}),
    "trial.ending": ("An assigned plan ends within three days.", {}),
    "user.created": ("A user was created.", {}),
    "user.directory_updated": (
        "A SCIM directory has changed what only it knows about a user.",
        {"directory": ({"title": "Analyst"}, {"title": "Countess"})},
    ),
    "user.erased": ("A user's personal data was erased.", {}),
    "user.meta_data_patched": (
        "A user's metadata was changed.",
        {"meta_data": ({}, {"team": "blue"})},
    ),
    "user.updated": ("A user was changed.", {"first_name": ("Augusta", "Ada")}),
    "webhook_endpoint.disabled": (
        "The service has disabled a webhook endpoint; `disabled_reason` says why.",
        {"is_active": (True, False), "disabled_reason": (None, "gone")},
    ),
}
"""A type -> what has happened, and an example of ``changes``."""
