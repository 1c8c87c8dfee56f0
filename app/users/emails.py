"""Whether the e-mail addresses of written users are free, and whether they may be active.

E-mail addresses are compared without case, and unique among a tenant's active users. A user whose
erasure is requested is not active.
"""

from __future__ import annotations

import hashlib
import string
import unicodedata

from sqlalchemy import and_, case, exists, func, select

from app.core.db.bulk import as_arrays, rows_from_arrays
from app.core.db.statements import Statement
from app.core.errors import Conflict
from app.users.models import User, UserErasure

MAX_KEY = 2048  # bytes; an entry of a B-tree index has at most 2,704
LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

CLAIM = ("tenant_id", "email_key", "id", "is_active")

_claimed = rows_from_arrays(User.__table__, CLAIM).subquery("claimed").c
_is_taken = func.email_is_taken(_claimed.tenant_id, _claimed.email_key, _claimed.id)
_is_erased = exists().where(
    UserErasure.tenant_id == _claimed.tenant_id, UserErasure.user_id == _claimed.id
)
_claims = (
    select(
        case((_claimed.email_key != "", _is_taken)).label("is_taken"),
        and_(_claimed.is_active, _is_erased).label("is_erased"),
    )
    .order_by(_claimed.tenant_id, _claimed.email_key)  # the same order in each transaction
    .subquery("claims")
    .c
)
CHECK_CLAIMS = Statement(
    "users.lock_emails",
    select(
        func.bool_or(_claims.is_taken).label("is_taken"),
        func.bool_or(_claims.is_erased).label("is_erased"),
    ),
)


class EmailTaken(Conflict):
    code = "email_taken"
    detail = "Another active user of this tenant has this e-mail address; change or deactivate that user first."


class ErasureRequested(Conflict):
    code = "erasure_requested"
    detail = "The erasure of this user is requested, so the user cannot be activated."


def email_key(address: str) -> str:
    """The text by which addresses are compared; equal for those that differ only in case.

    This is Unicode's canonical caseless form, composed (NFC), so ``RENÉE@`` is ``renée@``. A form
    longer than :data:`MAX_KEY` is replaced by its digest.
    """
    key = unicodedata.normalize("NFC", unicodedata.normalize("NFD", address).casefold())
    encoded = key.encode()
    return key if len(encoded) <= MAX_KEY else hashlib.sha256(encoded).hexdigest()


def is_same_address(one: str, other: str) -> bool:
    """Whether two texts are the same mailbox: equal, but for the case of ASCII letters.

    It is stricter than :func:`email_key`, which also equates letters that look alike, such as the
    Kelvin sign and ``K``: they are different mailboxes.
    """
    return one.translate(LOWER) == other.translate(LOWER)


def check_claims(*users: User) -> None:
    """Raise EmailTaken if another active user of the tenant has the address of one of ``users``.

    Raise ErasureRequested for an active user whose erasure is requested. Call it after the rows are
    written. It first waits for other transactions that check the same addresses, so only one of two
    simultaneous changes succeeds.
    """
    if not users:
        return
    rows = [{name: getattr(user, name) for name in CLAIM} for user in users]
    found = CHECK_CLAIMS.one(**as_arrays(rows))
    if found.is_erased:
        raise ErasureRequested
    if found.is_taken:
        raise EmailTaken
