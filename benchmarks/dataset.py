"""The data: tenants, a hundred users each with a ten-key ``meta_data``, loaded by COPY.

The search terms are those that the service would write.

Every id follows from the row's number, so that the load needs to look nothing up.
"""

from __future__ import annotations

import csv
import io
import json
from collections import namedtuple
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TextIO
from uuid import UUID

from psycopg2.extensions import connection, cursor, get_wait_callback, set_wait_callback

from app.search import writer
from app.search.models import EntityType

START = datetime(2026, 1, 1, tzinfo=UTC)
ROLES = ("member", "viewer", "billing")
PLAN = "pro"
FLAGS = 20
OVERRIDES = 5  # per tenant
DEPARTMENTS = ("sales", "support", "design", "legal", "finance", "people", "data", "security")
TENANT, USER, MEMBERSHIP, SUBSCRIPTION, PRESET, OVERRIDE, DEPARTMENT, SEATS = range(1, 9)
NULL = "\\N"
BATCH = 200  # tenants per COPY

Row = Sequence[Any]


def row_id(kind: int, number: int) -> UUID:
    """A UUIDv7 that tells when, which table and which row."""
    milliseconds = int(START.timestamp() * 1000) + number
    return UUID(int=milliseconds << 80 | 7 << 76 | kind << 64 | 2 << 62 | number)


def org_id(tenant: int) -> str:
    return f"org_company_{tenant}"


def subject(user: int) -> str:
    return f"idp|{user}"


def fill(session: connection, *, tenants: int, users_per_tenant: int) -> None:
    """Load the data; if exactly this many tenants are there already, only reset the roles."""
    with session, session.cursor() as database:
        database.execute("SELECT count(*) FROM tenants")
        if database.fetchone() == (tenants,):
            database.execute(
                "UPDATE memberships SET role = %s WHERE role NOT IN ('owner', %s)", [ROLES[-1]] * 2
            )
            return
    with _loading(session), session, session.cursor() as database:
        database.execute(
            "CREATE TEMP TABLE templates AS SELECT * FROM roles WHERE tenant_id IS NULL"
        )
        database.execute("TRUNCATE tenants, plan_presets, search_terms, search_builds CASCADE")
        database.execute("INSERT INTO roles SELECT * FROM pg_temp.templates")
        _copy(database, "plan_presets", PRESET_COLUMNS, [preset_row()])
        for first in range(0, tenants, BATCH):
            batch = range(first, min(first + BATCH, tenants))
            users = range(batch.start * users_per_tenant, batch.stop * users_per_tenant)
            _copy(database, "tenants", TENANT_COLUMNS, map(tenant_row, batch))
            _copy(database, "subscriptions", SUBSCRIPTION_COLUMNS, map(subscription_row, batch))
            _copy(database, "feature_overrides", OVERRIDE_COLUMNS, _overrides(batch))
            _copy(database, "custom_fields", FIELD_COLUMNS, _fields(batch))
            _copy(database, "custom_field_indexes", INDEX_COLUMNS, map(index_row, batch))
            _copy(database, "users", USER_COLUMNS, _users(users, users_per_tenant))
            _copy(database, "memberships", MEMBERSHIP_COLUMNS, _members(users, users_per_tenant))
            _copy(
                database, "custom_field_index_rows", VALUE_COLUMNS, _values(users, users_per_tenant)
            )
            for searched in (
                (EntityType.TENANT, TENANT_COLUMNS, map(tenant_row, batch)),
                (EntityType.SUBSCRIPTION, SUBSCRIPTION_COLUMNS, map(subscription_row, batch)),
                (EntityType.USER, USER_COLUMNS, _users(users, users_per_tenant)),
            ):
                _copy(database, "search_terms", TERM_COLUMNS, _terms(*searched))


@contextmanager
def _loading(session: connection) -> Iterator[None]:
    """Few checkpoints for as long as this lasts, and afterwards nothing left to be tidied up."""
    _apply(
        session,
        "ALTER SYSTEM SET max_wal_size = '8GB'",
        "ALTER SYSTEM SET checkpoint_timeout = '1h'",
        "SELECT pg_reload_conf()",
    )
    try:
        yield
    finally:
        _apply(session, "ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()")
    _apply(session, "VACUUM (ANALYZE)", "CHECKPOINT")


def _apply(session: connection, *commands: str) -> None:
    """Commands that no transaction may hold."""
    session.autocommit = True
    with session.cursor() as database:
        for command in commands:
            database.execute(command)
    session.autocommit = False


TENANT_COLUMNS = (
    "id created_at updated_at version idp_org_id name slug plan_name primary_contact_name"
    " primary_contact_email primary_contact_phone mailing_address_line_1 mailing_address_line_2"
    " mailing_city mailing_state mailing_zipcode mailing_country is_active"
)


def tenant_row(number: int) -> Row:
    return (
        *(row_id(TENANT, number), *_stamps(number), org_id(number)),
        *(f"Tenant {number}", f"company-{number}", PLAN, "Ada Lovelace"),
        *(f"ada@tenant-{number}.example", "+44 20 7946 0000", "12 St James's Square", ""),
        *("London", "", "SW1Y 4JH", "GB", True),
    )


PRESET_COLUMNS = "id created_at updated_at version name flags"


def preset_row() -> Row:
    """One plan with flags of every type."""
    defaults = [("boolean", False), ("string", "basic"), ("number", 10), ("json", {"limit": 5})]
    flags = [
        {
            "flag_key": flag_key(number),
            "flag_type": defaults[number % len(defaults)][0],
            "default_value": defaults[number % len(defaults)][1],
            "description": f"What flag {number} switches.",
            "is_locked": False,
        }
        for number in range(FLAGS)
    ]
    return row_id(PRESET, 0), *_stamps(0), PLAN, json.dumps(flags)


def flag_key(number: int) -> str:
    return f"feature-{number}"


OVERRIDE_COLUMNS = "id created_at updated_at version tenant_id plan_preset_id flag_key flag_value"


def _overrides(tenants: Iterable[int]) -> Iterator[Row]:
    """Every tenant has its own value of the first boolean flags."""
    for tenant in tenants:
        for place in range(OVERRIDES):
            number = tenant * OVERRIDES + place
            yield (
                *(row_id(OVERRIDE, number), *_stamps(number), row_id(TENANT, tenant)),
                *(row_id(PRESET, 0), flag_key(place * 4), "true"),
            )


FIELD_COLUMNS = (
    "id created_at updated_at version tenant_id idp_org_id entity_type field_key label field_type"
    " options is_required is_searchable is_active sort_order"
)


def _fields(tenants: Iterable[int]) -> Iterator[Row]:
    """Two of the ten keys of ``meta_data`` are custom fields, one of them searchable."""
    for tenant in tenants:
        place = (row_id(TENANT, tenant), org_id(tenant), "user")
        options = json.dumps(DEPARTMENTS)
        yield (
            *(row_id(DEPARTMENT, tenant), *_stamps(tenant), *place, "department", "Department"),
            *("select", options, False, True, True, 0),
        )
        yield (
            *(row_id(SEATS, tenant), *_stamps(tenant), *place, "seats", "Seats"),
            *("integer", NULL, False, False, True, 1),
        )


INDEX_COLUMNS = "tenant_id field_id state is_settled done total built_version updated_at"


def index_row(tenant: int) -> Row:
    return (row_id(TENANT, tenant), row_id(DEPARTMENT, tenant), "ready", True, 0, 0, 1, START)


VALUE_COLUMNS = "tenant_id field_id entity_id ordinal text_key"


def _values(users: Iterable[int], users_per_tenant: int) -> Iterator[Row]:
    """The search index of the departments."""
    for user in users:
        tenant = user // users_per_tenant
        department = meta_data(user)["department"]
        yield row_id(TENANT, tenant), row_id(DEPARTMENT, tenant), row_id(USER, user), 0, department


TERM_COLUMNS = "tenant_id entity_type term entity_id"


def _terms(entity_type: EntityType, columns: str, rows: Iterable[Row]) -> Iterator[Row]:
    make = namedtuple("Found", columns)._make  # type: ignore[misc]
    for row in rows:
        yield from writer.keys(entity_type, make(row))


SUBSCRIPTION_COLUMNS = (
    "id created_at updated_at version tenant_id bp_subscription_id bp_customer_id bp_plan_id"
    " bp_status status_class plan_name is_free_trial start_date auto_renew billing_cycle"
    " per_cycle_billing_amount billing_address_line_1 billing_city billing_state billing_zip"
    " billing_country billing_email billing_phone billing_contact_name"
    " send_invoice_days_before_due send_email_receipts send_paper_receipts"
)


def subscription_row(number: int) -> Row:
    return (
        *(row_id(SUBSCRIPTION, number), *_stamps(number), row_id(TENANT, number)),
        *(
            f"sub_company_{number}",
            f"cus_company_{number}",
            "plan_pro_monthly",
            "active",
            "live",
            PLAN,
            False,
        ),
        *(START, True, "monthly", 4900, "12 St James's Square", "London", "", "SW1Y 4JH", "GB"),
        *(f"billing@tenant-{number}.example", "+44 20 7946 0000", "Ada Lovelace", 7, True, False),
    )


USER_COLUMNS = (
    "id created_at updated_at version tenant_id idp_org_id created_by_user_id updated_by_user_id"
    " idp_user_id email email_key first_name last_name is_active meta_data"
)


def _users(numbers: Iterable[int], users_per_tenant: int) -> Iterator[Row]:
    for number in numbers:
        tenant = number // users_per_tenant
        email = f"user{number}@tenant-{tenant}.example"
        yield (
            *(row_id(USER, number), *_stamps(number), row_id(TENANT, tenant), org_id(tenant)),
            *("system:idp", "system:idp", subject(number), email, email),
            *(f"First{number}", f"Last{number}", True, json.dumps(meta_data(number))),
        )


def meta_data(number: int) -> dict[str, Any]:
    """Ten keys of several kinds."""
    return {
        "department": DEPARTMENTS[number % len(DEPARTMENTS)],
        "cost_center": f"CC-{number % 97:03}",
        "locale": "en-GB",
        "timezone": "Europe/London",
        "seats": number % 50,
        "score": number % 1000 / 10,
        "is_contractor": number % 7 == 0,
        "tags": ["onboarded", f"team-{number % 12}"],
        "address": {"city": "London", "country": "GB", "postcode": "SW1Y 4JH"},
        "notes": "Prefers e-mail to telephone calls; works from Monday to Thursday.",
    }


MEMBERSHIP_COLUMNS = (
    "id created_at updated_at version tenant_id idp_org_id created_by_user_id updated_by_user_id"
    " user_id idp_membership_id role is_active"
)


def _members(numbers: Iterable[int], users_per_tenant: int) -> Iterator[Row]:
    """Every tenant's first user is its owner."""
    for number in numbers:
        tenant, place = divmod(number, users_per_tenant)
        yield (
            *(row_id(MEMBERSHIP, number), *_stamps(number), row_id(TENANT, tenant), org_id(tenant)),
            *("system:idp", "system:idp", row_id(USER, number), f"om_company_{number}"),
            *("owner" if place == 0 else ROLES[-1], True),
        )


def _stamps(number: int) -> tuple[datetime, datetime, int]:
    moment = START + timedelta(milliseconds=number)
    return moment, moment, 1


def _copy(database: cursor, table: str, columns: str, rows: Iterable[Row]) -> None:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    text.seek(0)
    names = ", ".join(f'"{name}"' for name in columns.split())
    copy(database, f"COPY {table} ({names}) FROM STDIN (FORMAT csv, NULL '\\N')", text)


def copy(database: cursor, statement: str, text: TextIO) -> None:
    """Run ``COPY … FROM STDIN``, which psycopg2 refuses while the application's callback is set."""
    callback = get_wait_callback()
    set_wait_callback(None)
    try:
        database.copy_expert(statement, text)
    finally:
        set_wait_callback(callback)
