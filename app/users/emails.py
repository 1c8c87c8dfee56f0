"""E-mail addresses of users: compared without case, and unique among a tenant's active users."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence

from sqlalchemy import bindparam, func, select

from app.core.db.bulk import as_arrays, rows_from_arrays
from app.core.db.statements import Statement
from app.core.errors import Conflict
from app.users.models import User

MAX_KEY = 2048  # bytes; an entry of a B-tree index has at most 2,704

_claimed = rows_from_arrays(User, ("tenant_id", "email_key", "id")).subquery("claimed").c
_claims = (
    select(
        func.email_is_taken(_claimed.tenant_id, _claimed.email_key, _claimed.id).label("is_taken")
    )
    .order_by(_claimed.tenant_id, _claimed.email_key)  # the same order in each transaction
    .subquery("claims")
)

IS_TAKEN = Statement(
    "users.lock_email",
    select(
        func.email_is_taken(bindparam("tenant_id"), bindparam("email_key"), bindparam("user_id"))
    ),
)


ANY_IS_TAKEN = Statement(
    "users.lock_emails", select(func.coalesce(func.bool_or(_claims.c.is_taken), False))
)


class EmailTaken(Conflict):
    """Another active user of the tenant has the e-mail address, in whatever case."""

    code = "email_taken"
    detail = "Another active user of this tenant has this e-mail address."


def email_key(address: str) -> str:
    """The text by which addresses are compared; equal for those that differ only in case.

    This is Unicode's canonical caseless form, composed (NFC), so ``RENÉE@`` is ``renée@``. Of a form
    longer than :data:`MAX_KEY` it is the digest.
    """
    key = unicodedata.normalize("NFC", unicodedata.normalize("NFD", address).casefold())
    encoded = key.encode()
    return key if len(encoded) <= MAX_KEY else hashlib.sha256(encoded).hexdigest()


def check_free(user: User) -> None:
    """Raise EmailTaken if another active user of the tenant has the address of ``user``.

    Call it after the row is written. It first waits for other transactions that check the same
    address, so of two at once one succeeds.
    """
    values = {"tenant_id": user.tenant_id, "email_key": user.email_key, "user_id": user.id}
    if user.email_key and IS_TAKEN.scalar(**values):
        raise EmailTaken


def check_all_free(users: Sequence[User]) -> None:
    """:func:`check_free` of each user, by one statement."""
    claimed = [user for user in users if user.email_key and user.is_active]
    if claimed:
        names = ("tenant_id", "email_key", "id")
        rows = [{name: getattr(user, name) for name in names} for user in claimed]
        if ANY_IS_TAKEN.scalar(**as_arrays(rows)):
            raise EmailTaken
