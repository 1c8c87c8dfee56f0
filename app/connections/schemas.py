"""Requests and answers of /v1/scim-connections."""

from __future__ import annotations

import jwt

from app.auth.permissions import Role
from app.auth.tokens import algorithm_of
from app.connections.models import ConnectionStatus, Deactivate, DirectoryProvider
from app.core.errors import Invalid, value_error
from app.core.http.pagination import ONE_TENANT, PageQuerySchema
from app.core.validation.fields import (
    AwareDateTime,
    Choice,
    Int,
    JsonObject,
    ListOf,
    Name,
    Str,
    Uuid,
)
from app.core.validation.messages import under
from app.core.validation.schemas import AnswerSchema, AttributedSchema, Schema
from app.roles.schemas import ROLE_KEY

MAX_GROUP_ROLES = 200
MAX_NAME = 255

KEYS = {"maxItems": 5}  # of a client, which has two while it changes its key
JWK_MEMBERS = frozenset({"kty", "crv", "x", "y", "n", "e", "kid", "use", "alg"})
MAX_JWK_TEXT = 1400  # characters; the modulus of an RSA key of 8,192 bits
SERVED = (
    "The requests of a `disabled` connection are refused (403), and those of one that is"
    " `testing` unless they read."
)
RSA_BITS = range(2048, 4097)


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "name": "Okta",
        "provider": "okta",
        "status": "active",
        "default_role": "member",
        "group_roles": {"Finance": "billing"},
        "deactivate": "membership",
        "acts_as": "admin",
        "prefix": "scim_Vb3x9Qa",
        "old_expires_at": None,
        "public_keys": [],
        "last_request_at": None,
        "request_count": 42,
        "error_count": 1,
        "last_error": "POST /Users: 409 uniqueness",
        "last_error_at": None,
        "user_count": 12,
        "group_count": 2,
        "token": "scim_…",
        "overlap_hours": 24,
    }
    descriptions = {
        "name": "A name for people.",
        "provider": "The directory at the other end.",
        "default_role": "The role of people whose groups give them none.",
        "group_roles": "The role of a group's members, by the group's displayName, id or externalId."
        " Of `owner`, `admin`, `billing`, `member` and `viewer` the highest of several groups is the"
        " membership's. Any other role, which needs `roles:write`, is assigned to the group. Nobody"
        " can give a role that they could not give to a person.",
        "public_keys": "The keys (JWK: RSA of 2,048 to 4,096 bits, P-256 or Ed25519) of a client that"
        " gets its tokens by signed assertions (RFC 7523).",
        "acts_as": "The role with which the connection makes its changes: that of whoever created it."
        " Only one that acts as an owner can change owners.",
        "old_expires_at": "The end of the token before the last rotation.",
        "deactivate": "What the directory ends if it deactivates or deletes a person: the membership,"
        " or also the user.",
        "last_request_at": "When the last request came (UTC); null before the first.",
        "last_error": "The last request that was answered with an error; empty without one.",
        "last_error_at": "When that was (UTC); null without an error.",
        "overlap_hours": "How many hours the present token stays valid; 0: it ends now.",
    }


class GroupRoles(JsonObject):
    """An object of the keys of roles."""

    keywords = {
        "additionalProperties": {"type": "string", "pattern": ROLE_KEY},
        "maxProperties": MAX_GROUP_ROLES,
    }
    role = Str(pattern=ROLE_KEY)

    def from_json(self, value: object) -> dict[str, str]:
        loaded = super().from_json(value)
        if len(loaded) > MAX_GROUP_ROLES:
            reason = f"at most {MAX_GROUP_ROLES} groups can have a role"
            raise Invalid(value_error((), reason, value))
        for name, role in loaded.items():
            if not 0 < len(name) <= MAX_NAME:
                reason = f"a group's name has 1 to {MAX_NAME} characters"
                raise Invalid(value_error((name[:MAX_NAME],), reason, role))
            try:
                self.role.deserialize(role)
            except Invalid as fault:
                raise Invalid(*under(name, fault.errors)) from None
        return loaded


def _refusal(reason: str) -> Invalid:
    return Invalid(value_error((), reason, None))


class PublicKey(JsonObject):
    """A public key as a JWK (RFC 7517)."""

    def from_json(self, value: object) -> dict[str, str]:
        """The public members; a private key is refused, because it is no secret any more."""
        given = super().from_json(value)
        if "d" in given or "k" in given:
            raise _refusal("the key is private: send only its public part")
        key = {name: member for name, member in given.items() if name in JWK_MEMBERS}
        if not all(isinstance(one, str) and len(one) <= MAX_JWK_TEXT for one in key.values()):
            raise _refusal("the members of a key are texts")
        try:
            loaded = jwt.PyJWK(key).key
            algorithm_of(loaded)
        except (jwt.PyJWTError, LookupError, ValueError, TypeError, AttributeError):
            raise _refusal("not a public key for RS256, ES256 or EdDSA") from None
        if key["kty"] == "RSA" and loaded.key_size not in RSA_BITS:
            raise _refusal("an RSA key has 2,048 to 4,096 bits")
        return key


class ScimConnectionSchema(Documented, AttributedSchema):
    """A connection of a directory, without its token; ``prefix`` is the token's beginning."""

    tenant_id = Uuid()
    name = Str()
    provider = Choice(DirectoryProvider)
    status = Choice(ConnectionStatus, description="Whether the connection's requests are served.")
    default_role = Choice(Role)
    group_roles = GroupRoles()
    deactivate = Choice(Deactivate)
    acts_as = Choice(Role)
    prefix = Str(description="The beginning of the token, to recognise it by.")
    old_expires_at = AwareDateTime(nullable=True)
    public_keys = ListOf(PublicKey(), metadata=KEYS)
    last_request_at = AwareDateTime(nullable=True)
    request_count = Int(description="How many requests came.")
    error_count = Int(description="Of the requests, those answered with an error.")
    last_error = Str()
    last_error_at = AwareDateTime(nullable=True)
    user_count = Int(description="Users that it has provisioned.")
    group_count = Int(description="Groups that it has provisioned.")


class ScimConnectionCreatedSchema(ScimConnectionSchema):
    """A connection with a new token, which no other answer shows."""

    optional = ("token",)

    token = Str(description="Absent if the answer is replayed for an Idempotency-Key.")


class ScimConnectionCreateSchema(Documented):
    """A new connection."""

    name = Name(required=True, min_length=1)
    provider = Choice(DirectoryProvider, load_default=DirectoryProvider.GENERIC)
    default_role = Choice(Role, load_default=Role.MEMBER)
    group_roles = GroupRoles(load_default=dict)
    deactivate = Choice(Deactivate, load_default=Deactivate.MEMBERSHIP)
    status = Choice(ConnectionStatus, load_default=ConnectionStatus.ACTIVE, description=SERVED)
    public_keys = ListOf(PublicKey(), load_default=list, metadata=KEYS)


class ScimConnectionUpdateSchema(Documented):
    """The fields to change."""

    name = Name(min_length=1)
    provider = Choice(DirectoryProvider)
    status = Choice(ConnectionStatus, description=SERVED)
    default_role = Choice(Role)
    group_roles = GroupRoles()
    deactivate = Choice(Deactivate)
    public_keys = ListOf(PublicKey(), metadata=KEYS)


class ScimRotationSchema(Documented):
    """How long the present token stays valid."""

    needs_body = False

    overlap_hours = Int(ge=0, le=720, load_default=24)


class ScimRequestSchema(Documented, AnswerSchema):
    """A request of a connection, without the values that it sent."""

    sent_at = AwareDateTime(description="When the request came (UTC).")
    method = Str(description="The HTTP method.")
    path = Str(description="The path below /scim/v2, with `…` for values that may be personal.")
    status = Int(description="The HTTP status of the answer.")
    detail = Str(description="The error's scimType, or the attributes that were ignored.")


class ScimConnectionQuerySchema(PageQuerySchema):
    """Filters of the list of connections."""

    tenant_id = Uuid(metadata=ONE_TENANT)
