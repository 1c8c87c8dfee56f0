"""Have the service do everything it can on large tables, and read what PostgreSQL did for it.

PostgreSQL itself tells the plans (``auto_explain``), of every statement that the application's role
runs, those inside its functions and foreign keys included.
"""

import json
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from flask import Flask
from psycopg2.extensions import connection

from app import create_app
from app.core.jobs.queues import JOBS
from app.dev.engines.instance import APPLICATION_ROLE, Instance
from app.dev.engines.sharing import engines
from app.dev.environment import development_environment
from app.events import positions
from app.extensions import db
from app.inbox.providers import EMAIL, IDENTITY
from app.inbox.signatures.sending import sign
from app.webhooks.deliveries import work
from app.webhooks.deliveries.attempt import Result
from benchmarks.dataset import fill
from benchmarks.stage import connect
from tests import factories, migrated
from tests.conformance.webhook_samples import sample_files
from tests.conftest import TEST_SETTINGS
from tests.document import as_text
from tests.hostile.document import Document
from tests.hostile.world import World, create_world
from tests.inbox.sending import SECRETS
from tests.scim.directory import Directory, create_connection, replace

USERS_PER_TENANT = 5
CALLERS = ("superadmin", "owner")
KEYS = ("tenant key", "platform key")  # see what the callers see, and are read by other statements
PROVIDERS = {"workos": IDENTITY, "resend": EMAIL}
ENVIRONMENT = {
    "IDP_WEBHOOK_SECRETS": f"workos:{SECRETS['workos']}",
    "EMAIL_WEBHOOK_SECRETS": f"resend:{SECRETS['resend']}",
}
SETTINGS = {
    "plan_cache_mode": "force_generic_plan",  # of what is prepared; the first use is not
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_nested_statements": "on",
    "auto_explain.log_format": "json",
}
# What the benchmarks' data set lacks.
FURTHER = """
INSERT INTO audit_events
    (tenant_id, id, created_at, actor, action, target_type, target_id, before, after, request_id)
SELECT tenant_id, id, created_at, 'system:idp', 'user.created', 'user', id::text, '{}', '{}', ''
FROM users;
INSERT INTO events (position, tenant_id, id, created_at, type, actor, is_platform_actor, request_id,
    before, after)
SELECT row_number() OVER (ORDER BY id), tenant_id, id, created_at, 'user.created', 'system:idp',
    false, '', '{}', '{}'
FROM users;
UPDATE event_feed SET last_position = (SELECT max(position) FROM events);
INSERT INTO event_outbox (tenant_id, id, created_at, type, actor, is_platform_actor, request_id,
    before, after)
SELECT tenant_id, id, created_at, 'user.created', 'system:idp', false, '', '{}', '{}' FROM users;
INSERT INTO api_keys (id, created_at, updated_at, version, tenant_id, name, digest, prefix,
    permissions, created_by_user_id, updated_by_user_id)
SELECT id, created_at, updated_at, 1, tenant_id, 'key', md5(id::text), 'sk_', '{}', 'x', 'x'
FROM users;
INSERT INTO idempotency_keys (scope, key, fingerprint, created_at)
SELECT 'user:' || id, 'key', '', created_at FROM users;
INSERT INTO webhook_events (id, created_at, updated_at, version, source, external_id, event_type,
    status, detail, attempts, replays, headers, digest, request_id)
SELECT id, created_at, updated_at, 1, 'workos', id::text, 'user.created', 'succeeded', '', 1, 0,
    '{}', '', '' FROM users;
INSERT INTO email_events (id, created_at, webhook_event_id, ordinal, source, message_id, recipient,
    address, kind, occurred_at, reason, response, url, tags, metadata)
SELECT id, created_at, id, 0, 'resend', id::text, email, email, 'delivered', created_at, '', '', '',
    '[]', '{}' FROM users;
INSERT INTO email_messages (id, created_at, updated_at, version, source, message_id, address, state,
    rank, opens, clicks)
SELECT id, created_at, updated_at, 1, 'resend', id::text, email, 'delivered', 1, 0, 0 FROM users;
INSERT INTO suppressions (id, created_at, updated_at, version, address, cause, scope, source,
    is_active)
SELECT id, created_at, updated_at, 1, email, 'bounced', '', 'resend', true FROM users;
INSERT INTO identity_objects (source, kind, object_id, organization_id, user_id, is_deleted,
    is_waiting, state, created_at, updated_at)
SELECT 'workos', 'membership', id::text, idp_org_id, idp_user_id, false, false, '{}', created_at,
    updated_at FROM users;
INSERT INTO tenant_deletions (tenant_id, requested_at, requested_by, worked_at, stage, deleted_rows)
SELECT id, created_at, 'x', now(), 'waiting', '{}' FROM tenants;
INSERT INTO user_erasures (tenant_id, user_id, requested_at, requested_by, worked_at, is_everywhere)
SELECT tenant_id, id, created_at, 'x', now(), false FROM users;
INSERT INTO plan_assignments (tenant_id, plan_name, next_plan_name, until, reason, created_by,
    created_at)
SELECT id, plan_name, 'former-' || id, now() + random() * interval '1 year', '', 'x', created_at
FROM tenants;
INSERT INTO tenant_notes (tenant_id, version, updated_at, updated_by, text)
SELECT id, 1, now(), 'x', 'x' FROM tenants;
INSERT INTO billing_customers (tenant_id, id, created_at, updated_at, version, provider, customer_id,
    is_manual)
SELECT id, id, created_at, created_at, 1, 'stripe', 'cus-' || id, true FROM tenants;
INSERT INTO plan_prices (id, created_at, updated_at, version, provider, price_id, plan_name,
    sort_order, is_pending, is_deleted)
SELECT id, created_at, created_at, 1, 'stripe', 'price-' || id, 'free', 0, false, false FROM tenants;
INSERT INTO usage_counters (tenant_id, feature, period_start, period_end, used, announced)
SELECT tenant_id, 'limit-' || row_number() OVER (PARTITION BY tenant_id), created_at,
    created_at + interval '1 month', 1, 0 FROM users;
INSERT INTO usage_holds (tenant_id, id, created_at, expires_at, ended_at, period_start, digest, amount,
    counted, over_by, ttl_seconds, is_late, feature, kind, state)
SELECT tenant_id, id, created_at, created_at, created_at, created_at, id, 1, 1, 0, 300, false,
    'limit-1', 'hold', 'settled' FROM users;
INSERT INTO usage_days (tenant_id, feature, period_start, day, used, added)
SELECT tenant_id, feature, period_start, period_start::date, 1, 1 FROM usage_counters;
INSERT INTO credit_balances (tenant_id, feature, balance, due_at, told)
SELECT tenant_id, 'credits-' || row_number() OVER (PARTITION BY tenant_id), 1,
    now() + random() * interval '1 year', '{}' FROM users;
INSERT INTO credit_lots (tenant_id, id, created_at, starts_at, feature, granted, remaining, spent,
    untold, version, priority, source)
SELECT tenant_id, id, created_at, created_at, 'credits-1', 1, 1, 0, 0, 1, 100, 'purchase' FROM users;
INSERT INTO credit_entries (tenant_id, at, lot_id, amount, remaining, balance, feature, kind)
SELECT tenant_id, created_at, id, 1, 1, 1, 'credits-1', 'grant' FROM users;
INSERT INTO credit_holds (tenant_id, hold_id, lot_id, feature, amount, expires_at)
SELECT tenant_id, id, id, 'credits-1', 1, created_at + interval '1 year' FROM users;
INSERT INTO invitations (tenant_id, id, created_at, updated_at, version, created_by_user_id,
    updated_by_user_id, email, email_key, role, acts_as, meta_data, source, idp_invitation_id, digest,
    rotation, expires_at, mails)
SELECT tenant_id, id, created_at, updated_at, 1, 'x', 'x', email, email_key, 'member', 'owner', '{}',
    'api', '', id::text, 1, created_at + interval '7 days', 0 FROM users;
INSERT INTO rewinds (tenant_id, id, created_at, updated_at, version, created_by_user_id, state,
    to_position, to_time, position, kinds, step, done, counts, left_out, left_out_total, error,
    finished_at)
SELECT tenant_id, id, created_at, updated_at, 1, 'x', 'completed', 0, now(), 1, '[]', 0, 0, '{}',
    '[]', 0, '', now()
FROM users;
INSERT INTO setup_links (tenant_id, id, created_at, updated_at, version, created_by_user_id,
    updated_by_user_id, scopes, contact, digest, session_digest, expires_at)
SELECT tenant_id, id, created_at, updated_at, 1, 'x', 'x', '{scim}', email, id::text, idp_user_id,
    created_at + interval '7 days' FROM users;
INSERT INTO usage_keys (tenant_id, digest, amount, created_at)
SELECT tenant_id, id, 1, now() FROM users;
INSERT INTO domains (tenant_id, id, created_at, updated_at, version, name, display_name, record_name,
    record_value, state, "join", join_role, include_subdomains, enforce_sso, next_check_at,
    created_by_user_id, updated_by_user_id)
SELECT id, id, created_at, created_at, 1, slug || '.example.com', '', '', '', 'verified', 'auto',
    'member', true, false, now() + random() * interval '1 week', 'x', 'x'
FROM tenants;
INSERT INTO join_requests (tenant_id, id, created_at, updated_at, version, domain, idp_user_id, email,
    first_name, last_name, state, user_id, created_by_user_id, updated_by_user_id)
SELECT tenant_id, id, created_at, created_at, 1, 'example.com', idp_user_id, email, '', '', 'accepted',
    id, 'x', 'x'
FROM users;
INSERT INTO webhook_endpoints (tenant_id, id, created_at, updated_at, version, is_active, url, types,
    description, header_names, signing, created_by_user_id, updated_by_user_id)
SELECT id, id, created_at, updated_at, 1, true, 'https://example.com', '{user.*}', '', '{}', 'v1',
    'x', 'x'
FROM tenants;
INSERT INTO webhook_endpoint_states (tenant_id, endpoint_id, secret, window_count)
SELECT tenant_id, id, '', 0 FROM webhook_endpoints;
INSERT INTO log_streams (tenant_id, id, created_at, updated_at, version, kind, config, format, types,
    description, state, created_by_user_id, updated_by_user_id)
SELECT id, id, created_at, updated_at, 1, 'https', '{"url": "https://127.0.0.1:9"}', 'native', '{*}',
    '', 'active', 'x', 'x'
FROM tenants;
INSERT INTO log_stream_progress (tenant_id, stream_id, secrets, position, failures, next_attempt_at,
    written_until)
SELECT id, id, '', 0, 0, now() + interval '1 day', now() FROM tenants;
INSERT INTO webhook_deliveries (tenant_id, id, created_at, endpoint_id, event_id, type, status,
    attempts, next_attempt_at)
SELECT tenant_id, id, created_at, tenant_id, gen_random_uuid(), 'user.created',
    CASE WHEN random() < 0.1 THEN 'pending' ELSE 'succeeded' END, 1, NULL
FROM users;
UPDATE webhook_deliveries SET next_attempt_at = now() WHERE status = 'pending';
INSERT INTO scim_connections (tenant_id, id, created_at, updated_at, version, name, provider, status,
    default_role, group_roles, deactivate, acts_as, digest, prefix, public_keys, request_count,
    error_count, last_error, created_by_user_id, updated_by_user_id)
SELECT id, id, created_at, updated_at, 1, '', 'okta', 'active', 'member', '{}', 'membership', 'owner',
    md5(id::text), '', '[]', 0, 0, '', 'x', 'x'
FROM tenants;
INSERT INTO sso_connections (tenant_id, id, created_at, updated_at, version, source,
    idp_connection_id, name, provider, type, state, domains, certificate_ends_at)
SELECT tenant_id, id, created_at, updated_at, 1, 'workos', id, '', 'Okta', 'saml', 'active', '[]',
    now() + random() * interval '3 years'
FROM users;
INSERT INTO scim_access_tokens (tenant_id, connection_id, digest, expires_at)
SELECT tenant_id, id, md5(digest), now() FROM scim_connections;
INSERT INTO scim_requests (tenant_id, connection_id, slot, sent_at, method, path, status, detail)
SELECT tenant_id, tenant_id, row_number() OVER (PARTITION BY tenant_id), created_at, 'GET', '/Users',
    200, ''
FROM users;
INSERT INTO scim_users (tenant_id, id, created_at, updated_at, version, connection_id, user_name,
    user_name_key, external_id, attributes, has_mapped_role)
SELECT tenant_id, id, created_at, updated_at, 1, tenant_id, email, email, idp_user_id, '{}', false
FROM users;
INSERT INTO scim_emails (tenant_id, user_id, position, value, type, display, is_primary)
SELECT tenant_id, id, 0, user_name, 'work', '', true FROM scim_users;
INSERT INTO scim_groups (tenant_id, id, created_at, updated_at, version, connection_id, display_name,
    display_name_key, external_id)
SELECT tenant_id, id, created_at, updated_at, 1, connection_id, user_name, user_name, external_id
FROM scim_users;
INSERT INTO scim_members (tenant_id, group_id, member_id, user_id, display)
SELECT tenant_id, id, id, id, '' FROM scim_users;
INSERT INTO product_permissions (id, created_at, updated_at, version, key, description, group_name,
    created_by_user_id, updated_by_user_id)
SELECT id, created_at, created_at, 1, 'product:' || id, '', '', 'x', 'x' FROM tenants;
INSERT INTO roles (id, tenant_id, created_at, updated_at, version, key, name, permissions,
    assignable_by, created_by_user_id, updated_by_user_id)
SELECT id, tenant_id, created_at, updated_at, 1, 'role-' || id, '', ARRAY['product:' || tenant_id], 'admin', 'x', 'x'
FROM users;
INSERT INTO access_resources (tenant_id, type, id, created_at, updated_at, version, attributes,
    created_by_user_id, updated_by_user_id)
SELECT tenant_id, 'folder', id, created_at, updated_at, 1, '{}', 'x', 'x' FROM users;
INSERT INTO role_assignments (tenant_id, id, membership_id, role_id, resource_type, resource_id,
    created_at, updated_at, version, source, expires_at, created_by_user_id, updated_by_user_id)
SELECT tenant_id, id, id, user_id, 'folder', user_id, created_at, updated_at, 1, 'api',
    now() + random() * interval '1 year', 'x', 'x'
FROM memberships;
INSERT INTO audit_positions (tenant_id, position, number, id, row_id, version, updated_at,
    target_type)
SELECT tenant_id, row_number() OVER (ORDER BY id), 0, gen_random_uuid(), id, 1, created_at, 'user'
FROM audit_events;
INSERT INTO past_bases (tenant_id, position, target_type, row_id, version, updated_at, actor, state)
SELECT tenant_id, position, target_type, row_id, version, updated_at, 'x', '{}' FROM audit_positions;
"""


@dataclass(frozen=True)
class Statement:
    """What was sent, and how PostgreSQL ran it."""

    text: str
    plan: Mapping[str, Any]

    @cached_property
    def nodes(self) -> list[Mapping[str, Any]]:
        return list(_nodes(self.plan))

    @property
    def read(self) -> set[str]:
        """The tables that were read, or written."""
        return {_table(node) for node in self.nodes if "Relation Name" in node}

    @property
    def scanned(self) -> set[str]:
        """The tables that were read from one end to the other."""
        return {_table(node) for node in self.nodes if node["Node Type"] == "Seq Scan"}

    @property
    def shape(self) -> str:
        """The plan in one line: its nodes, with tables and indexes."""
        return " ← ".join(
            " ".join(str(node[name]) for name in ("Node Type", "Index Name") if name in node)
            + (f" ({node['Relation Name']})" if "Relation Name" in node else "")
            for node in self.nodes
        )


def collect(tenants: int) -> list[Statement]:
    """Fill a database of its own, use the whole service, and list what PostgreSQL ran for it.

    Statements that differ only in their values are listed once for each plan they had.
    """
    with private_application() as (app, instance), closing(connect(instance)) as session:
        fill(session, tenants=tenants, users_per_tenant=USERS_PER_TENANT)  # it resets settings
        # Plans follow these statistics, and not those of a later moment, when tables may be empty.
        _run(session, "ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()")
        _run(session, FURTHER, "ANALYZE")
        world = create_world(app, Document.of(app))
        _run(
            session,
            *(f"ALTER ROLE {APPLICATION_ROLE} SET {n} = '{v}'" for n, v in SETTINGS.items()),
        )
        with app.app_context():
            db.engine.dispose()  # the settings are those of new connections
        use_everything(app, world)
        with app.app_context():
            db.engine.dispose()
        return list(_read(instance.log("postgres").read_text()))


@contextmanager
def private_application() -> Iterator[tuple[Flask, Instance]]:
    """The application on engines of its own, where the factories make their rows from now on."""
    with tempfile.TemporaryDirectory(prefix="controlplane-plans-") as folder:
        Path(folder).chmod(0o755)  # the engines' account must get in where root runs this
        environment = development_environment({"INSTANCE_DIR": folder})
        migrated.prepare(Path(folder))
        with engines(folder, durable=False):
            app = create_app({**environment, **TEST_SETTINGS, **ENVIRONMENT})
            factories.bind(app)
            yield app, Instance.at(folder)


def use_everything(app: Flask, world: World) -> None:
    """Each operation as each kind of caller, with each parameter; webhooks; every job; the sender."""
    operations = sorted(world.document.operations, key=lambda one: one.method == "delete")
    for caller in (*CALLERS, *KEYS):
        world = create_world(app, world.document)
        for operation in operations:
            world.send(operation, as_=caller)
            for name, schema in operation.named("query").items() if caller in CALLERS else ():
                value = as_text(world.document.example(schema))
                world.send(operation, as_=caller, query={name: quote(value)})
    _use_scim(app)
    for provider, receiver in PROVIDERS.items():
        for file in sample_files(provider).values():
            signed = sign(provider, SECRETS[provider], file.read_bytes(), time.time())
            app.test_client().post(receiver.path, data=signed.body, headers=signed.headers)
    with app.app_context():
        for name, job in JOBS.items():
            # An erasure searches whole tables, once for all who wait.
            if job.every and name != "app.privacy.jobs.erase_users":
                job()
        positions.sequence()
        work.prepare()
        work.add_deliveries()
        claimed, _ = work.exchange([], 100)
        work.exchange([Result(one, code=500) for one in claimed], 0)


def _use_scim(app: Flask) -> None:
    """A directory finds, lists, changes and deletes a person and a group."""
    directory = Directory(app, create_connection(factories.create_tenant())[1])
    person = directory.add_user("ada", emails=[{"value": "ada@example.com", "type": "work"}])
    group = directory.add_group("Engineers", person["id"])
    for name in ("userName", "externalId", "emails.value", "id"):
        directory.find(f'{name} eq "ada"')
    directory.find('displayName eq "Engineers"', at="/Groups")
    for path in (f"/Users/{person['id']}", f"/Groups/{group['id']}"):
        directory.get(path.rpartition("/")[0])
        directory.get(path)
        directory.patch(path, replace("displayName", "Another"))
        directory.delete(path)


def _run(session: connection, *statements: str) -> None:
    session.autocommit = True
    with session.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


PLAN = re.compile(r"plan:\n(\t\{.*?\n\t\})", re.DOTALL)
VALUE = re.compile(r"E?'(?:[^']|'')*'(?:::[a-z\[\]]+)?|\b\d+(?:\.\d+)?\b")
LIST = re.compile(r"\?(?:, *\?)+")


def _read(log: str) -> Iterator[Statement]:
    seen = set()
    for found in PLAN.finditer(log):
        entry = json.loads(found[1].replace("\n\t", "\n"))
        text = LIST.sub("?, …", VALUE.sub("?", " ".join(entry["Query Text"].split())))
        statement = Statement(text, entry["Plan"])
        if (text, statement.shape) not in seen:
            seen.add((text, statement.shape))
            yield statement


def _table(node: Mapping[str, Any]) -> str:
    """The first partition of a table has its rows; others are empty, and may be scanned."""
    name: str = node["Relation Name"]
    return name.removesuffix("_first")


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)
