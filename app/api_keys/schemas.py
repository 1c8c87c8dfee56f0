"""Requests and answers of /v1/api-keys."""

from __future__ import annotations

from app.auth.permissions import Permission
from app.core.http.pagination import ONE_TENANT, PageQuerySchema
from app.core.validation.fields import AwareDateTime, Bool, Choice, ListOf, Name, Str, Uuid
from app.core.validation.schemas import AttributedSchema, Schema


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "name": "billing webhooks",
        "prefix": "sk_Vb3x9",
        "permissions": ["billing:write"],
        "expires_at": None,
        "secret": "sk_…",
    }
    descriptions = {
        "name": "A name for people.",
        "permissions": "What the key may do.",
        "expires_at": "When the key expires (UTC); null: never.",
        "revoked_at": "When the key was revoked (UTC); null if it was not.",
    }


class ApiKeySchema(Documented, AttributedSchema):
    """A key without its secret; ``prefix`` is the beginning of the secret."""

    tenant_id = Uuid(
        nullable=True, description="Null for a platform key, which is valid in all tenants."
    )
    name = Str()
    prefix = Str(description="The beginning of the secret, to recognise the key by.")
    permissions = ListOf(Str())
    expires_at = AwareDateTime(nullable=True)
    revoked_at = AwareDateTime(nullable=True)
    last_used_at = AwareDateTime(nullable=True, description="Accurate to a minute.")


class ApiKeyCreatedSchema(ApiKeySchema):
    """A new key with its secret, which no other answer shows."""

    optional = ("secret",)

    secret = Str(description="Absent if the answer is replayed for an Idempotency-Key.")


class ApiKeyCreateSchema(Documented):
    """A new key."""

    name = Name(required=True, min_length=1)
    permissions = ListOf(Choice(Permission), required=True)
    expires_at = AwareDateTime(nullable=True, description="Null: the key does not expire.")


class ApiKeyQuerySchema(PageQuerySchema):
    """Filters of the list of keys."""

    tenant_id = Uuid(metadata=ONE_TENANT)
    is_active = Bool(
        description="Only keys that are neither revoked nor expired, or only the others."
    )
