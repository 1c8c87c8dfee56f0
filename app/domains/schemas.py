"""Requests and answers of /v1/domains and /v1/join-requests."""

from __future__ import annotations

from app.auth.permissions import Role
from app.core.errors import Invalid, error, value_error
from app.core.http.pagination import ONE_TENANT, PageQuerySchema
from app.core.validation.fields import AwareDateTime, Bool, Choice, ListOf, Nested, Str, Uuid
from app.core.validation.schemas import AnswerSchema, AttributedSchema, Schema
from app.domains.domain_names import is_free_mail, is_public_suffix, to_ascii
from app.domains.models import CheckError, DomainState, Join, JoinRequestState

MAX_INPUT = 253  # characters of a name, in any form


class DomainName(Str):
    """The name of a domain, which is stored with A-labels (IDNA 2008)."""

    longest = MAX_INPUT

    def from_json(self, value: object) -> str:
        given = str(super().from_json(value))
        try:
            name = to_ascii(given)
        except ValueError as fault:
            raise Invalid(value_error((), str(fault), given)) from None
        if is_public_suffix(name):
            reason = "Anybody can register names below a public suffix"
            raise Invalid(error((), "public_suffix", reason, given))
        if is_free_mail(name):
            reason = "Anybody can have an address at a free mail domain"
            raise Invalid(error((), "free_mail_domain", reason, given))
        return name


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "name": "example.com",
        "display_name": "example.com",
        "domain": "example.com",
        "state": "verified",
        "record_name": "_controlplane-challenge.example.com",
        "record_value": "Vb3x9Qa4mT0yRk1n7WcUeZsHdJ2fLpXg8oIiBtNvC5E",
        "join": "suggest",
        "join_role": "member",
        "include_subdomains": False,
        "enforce_sso": False,
        "error": None,
        "unconfirmed_since": None,
        "idp_user_id": "user_01",
        "email": "ada@example.com",
        "first_name": "Ada",
        "last_name": "Lovelace",
        "preview": True,
        "after": "com.example user_01",
        "next_after": None,
    }
    descriptions = {
        "name": "The name with A-labels: an international one is `xn--…`.",
        "include_subdomains": "Whether addresses of subdomains count too. A subdomain that is a"
        " verified domain itself goes before.",
        "join": "What happens to a new person whose verified address is of the verified domain:"
        " nothing (`off`), a join request (`suggest`), a membership (`auto`). Without a free seat"
        " `auto` only makes a join request.",
        "join_role": "The role of people who join by the domain.",
        "enforce_sso": "A fact for the identity provider: people of the domain sign in by single"
        " sign-on. This service does not enforce it.",
        "idp_user_id": "The identity provider's id of the person.",
        "email": "The address, which the identity provider has verified.",
        "first_name": "Empty if it is not known.",
        "last_name": "Empty if it is not known.",
    }


class DomainSchema(Documented, AttributedSchema):
    """A domain that a tenant says is its own."""

    tenant_id = Uuid()
    name = Str()
    display_name = Str(description="The name as people read it.")
    state = Choice(
        DomainState,
        description="`failed`: no check has found the record for 72 hours. `lapsed`: three weekly"
        " checks of a verified domain have not found it.",
    )
    record_name = Str(description="The name of the TXT record to set.")
    record_value = Str(description="The value of the TXT record.")
    include_subdomains = Bool()
    join = Choice(Join)
    join_role = Choice(Role)
    enforce_sso = Bool()
    error = Choice(
        CheckError,
        nullable=True,
        description="Why the last check has failed: there is no TXT record; it has other values; the"
        " resolvers do not answer; their answer is not usable; the record is right, but another"
        " tenant has verified the domain.",
    )
    checked_at = AwareDateTime(nullable=True, description="When the last check was; null: never.")
    next_check_at = AwareDateTime(
        nullable=True, description="When the next check is due; null: none until somebody asks."
    )
    verified_at = AwareDateTime(nullable=True, description="When the domain became verified.")
    unconfirmed_since = AwareDateTime(
        nullable=True,
        description="Since when no check has found the record; null: the last one has.",
    )


class DomainUpdateSchema(Documented):
    """The fields to change. Who sets a rule for joining also needs `memberships:write`."""

    include_subdomains = Bool()
    join = Choice(Join)
    join_role = Choice(Role)
    enforce_sso = Bool()


class DomainCreateSchema(Documented):
    """A domain to verify."""

    name = DomainName(
        required=True,
        description="In any form; but not one such as `co.uk` (`public_suffix`) or `gmail.com`"
        " (`free_mail_domain`).",
    )
    include_subdomains = Bool(load_default=False)
    join = Choice(Join, load_default=Join.OFF)
    join_role = Choice(Role, load_default=Role.MEMBER)
    enforce_sso = Bool(load_default=False)


class DomainQuerySchema(Documented, PageQuerySchema):
    """Filters of the list of domains."""

    tenant_id = Uuid(metadata=ONE_TENANT)
    name = Str(description="Only this name, with A-labels.")
    state = Choice(DomainState, description="Only domains in this state.")


class JoinRequestSchema(Documented, AttributedSchema):
    """A person who is, or may become, a member by a verified domain."""

    tenant_id = Uuid()
    domain = Str(description="The name of the domain, with A-labels.")
    idp_user_id = Str()
    email = Str()
    first_name = Str()
    last_name = Str()
    state = Choice(
        JoinRequestState, description="A person whom the domain lets in at once is `accepted`."
    )
    user_id = Uuid(nullable=True, description="The user of an accepted one.")


class JoinRequestQuerySchema(Documented, PageQuerySchema):
    """Filters of the list of join requests."""

    tenant_id = Uuid(metadata=ONE_TENANT)
    state = Choice(JoinRequestState, description="Only requests in this state.")


class SweepQuerySchema(Documented):
    """Whether to only tell what would happen, and where to go on."""

    preview = Bool(load_default=False, description="Only tell what would happen.")
    after = Str(load_default="", description="`next_after` of the call before.")


class SweepSchema(Documented, AnswerSchema):
    """Who has become a member or a suggestion."""

    people = ListOf(
        Nested(JoinRequestSchema), description="Their join requests; `accepted`: they are members."
    )
    next_after = Str(
        nullable=True, description="Send it as `after` for the next people; null: there are none."
    )
