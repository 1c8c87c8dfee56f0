"""The resources and the service that SCIM's discovery endpoints describe."""

from __future__ import annotations

from typing import Annotated, ClassVar

import scim2_models
from pydantic import Field, field_validator
from scim2_models import (
    AnyExtension,
    AuthenticationScheme,
    Bulk,
    CaseExact,
    ChangePassword,
    ComplexAttribute,
    ETag,
    Filter,
    Group,
    Mutability,
    Pagination,
    Patch,
    Reference,
    ResourceType,
    ScimPolicy,
    ScimProvider,
    ServiceProviderConfig,
    Sort,
)
from scim2_models.resources.user import Role

MAX_OPERATIONS = 100
MAX_PAYLOAD = 1024 * 1024  # bytes of a bulk request
MAX_RESULTS = 200  # resources of a page
DEFAULT_RESULTS = 100


class Email(ComplexAttribute):
    """An e-mail address of the directory; only the address that becomes the user's is checked."""

    value: str | None = None
    """The address, as text."""
    display: str | None = None
    """The name that the directory shows for the address."""
    type: str | None = None
    """What the address is for, such as "work" or "home"."""
    primary: bool | None = None
    """Whether it is the preferred address. It becomes the user's."""


class User(scim2_models.User[AnyExtension]):
    """The User of RFC 7643, with addresses as they are sent. Its roles come from the groups."""

    emails: list[Email] | None = None  # type: ignore[assignment]  # any text, not only addresses
    """The e-mail addresses of the user."""
    Emails: ClassVar[type[ComplexAttribute]] = Email
    roles: Annotated[list[Role] | None, Mutability.read_only] = None
    """The role in the tenant, which comes from the user's groups."""


class Manager(ComplexAttribute):
    """The manager as the directory has it. Its id may be unknown here, and needs no ``$ref``."""

    value: Annotated[str | None, CaseExact.true] = None
    """The id of the manager."""
    ref: Annotated[Reference[User] | None, CaseExact.true] = Field(
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    """The URI of the manager's resource."""
    display_name: str | None = None
    """The manager's name."""


class EnterpriseUser(scim2_models.EnterpriseUser):
    """The enterprise extension of RFC 7643, kept as it is sent."""

    manager: Manager | None = None  # type: ignore[assignment]  # its `$ref` is optional
    """The user's manager."""

    @field_validator("manager", mode="before")
    @classmethod
    def _manager_of_id(cls, value: object) -> object:
        """A manager that is only an id (Entra) as an object; an empty id is none."""
        if isinstance(value, str):
            return {"value": value} if value else None
        return value


CONFIG = ServiceProviderConfig(
    patch=Patch(supported=True),
    bulk=Bulk(supported=True, max_operations=MAX_OPERATIONS, max_payload_size=MAX_PAYLOAD),
    filter=Filter(supported=True, max_results=MAX_RESULTS),
    change_password=ChangePassword(supported=False),
    sort=Sort(supported=True),
    etag=ETag(supported=True),
    pagination=Pagination(
        cursor=True,
        index=True,
        default_pagination_method=Pagination.DefaultPaginationMethod.index,
        default_page_size=DEFAULT_RESULTS,
        max_page_size=MAX_RESULTS,
    ),
    authentication_schemes=[
        AuthenticationScheme(
            type=AuthenticationScheme.Type.oauthbearertoken,
            name="Bearer token",
            description="The token of a SCIM connection, or an access token for its credentials.",
            primary=True,
        )
    ],
)
POLICY = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore, remove_value_as_filter=ScimPolicy.RemoveValue.apply
)
"""What real directories send: attributes of their own, ``remove`` with a list of values (Entra)."""
CREATING = POLICY.model_copy(
    update={"unmatched_path_filter": ScimPolicy.UnmatchedPathFilter.create}
)
"""For paths such as ``emails[type eq "work"].value`` of a type that the user lacks yet (Entra)."""

UserResource = User[EnterpriseUser]
PROVIDER = ScimProvider(
    models=[User, EnterpriseUser, Group],
    resource_types=[ResourceType.from_resource(UserResource), ResourceType.from_resource(Group)],
    config=CONFIG,
    policy=POLICY,
)
