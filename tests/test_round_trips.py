"""How many SQL statements a request costs, besides BEGIN and COMMIT and the tenant's scope.

Authentication is one statement (one function finds the role and the states), and reads or locks the
row that the path names where its tenant's own member asks. A change is two more: the row's update
and its row in the audit trail.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from app.core.db.connections import Cursor
from sqlalchemy import event

from app.extensions import db
from tests.changes import changes, make_world, prepare
from tests.factories import (
    create_api_key,
    create_member,
    create_tenant,
    create_user,
    platform_token,
)

ONE_CHANGE = 3
ONE_READ = 1
BESIDE = 1  # the row by itself, where it cannot be read with the credential
NOTHING = "SELECT"  # carries the writes that wait; it travels in their message


@contextmanager
def counted(app) -> Iterator[list[str]]:
    """The statements that are sent in the block."""
    sent: list[str] = []

    def note(_connection, _cursor, statement, *_):
        if statement != NOTHING:
            sent.append(statement)

    with app.app_context():
        engine = db.engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", note)


@pytest.fixture
def statements(app, api):
    """Call it with a request: how many statements it took, if it was answered with a success."""

    def count(method, path, **options):
        with counted(app) as sent:
            answer = api.request(method, path, **options)
        assert answer.status_code < 400, answer.text
        return len(sent)

    return count


class TestEveryPatch:
    def test_of_the_platform_takes_four_statements_at_most(self, app, api):
        world = make_world(app)
        wrong = []
        for one in changes(app):
            if one.method != "patch":
                continue
            send = prepare(api, world, one)
            with counted(app) as sent:
                answer = send()
            assert answer.status_code == 200, answer.text
            if len(sent) > ONE_CHANGE + BESIDE:
                wrong.append(f"{one.name}: {sent}")

        assert wrong == []


class TestUsers:
    @pytest.fixture
    def tenant(self, app):
        return create_tenant()

    @pytest.fixture
    def token(self, tenant):
        return create_member(tenant, role="owner")[2]

    def test_reads(self, tenant, token, statements):
        path = f"/v1/users/{create_user(tenant).id}"

        assert statements("GET", path, token=token) == ONE_READ
        assert statements("GET", path, token=token, headers={"If-None-Match": '"1"'}) == ONE_READ
        for further in (platform_token(), create_api_key(tenant, ["users:read"])):
            cost = ONE_READ + BESIDE if further.startswith("ey") else ONE_READ
            assert statements("GET", path, token=further) == cost
        assert statements("GET", "/v1/users?is_active=true", token=token) == ONE_READ + BESIDE

    def test_a_read_waits_for_the_database_once_for_each(self, tenant, token, api, monkeypatch):
        path = f"/v1/users/{create_user(tenant).id}"
        api.get(path, token=token)
        sent = []
        send = Cursor.send

        def note(cursor, *further):
            sent.append(further)
            send(cursor, *further)

        monkeypatch.setattr(Cursor, "send", note)
        for _ in range(3):
            assert api.get(path, token=token).status_code == 200

        assert len(sent) == 3 * ONE_READ

    def test_changes(self, tenant, token, statements):
        user, membership, _ = create_member(tenant, role="owner")
        path = f"/v1/users/{user.id}"
        membership_path = f"/v1/memberships/tenant/{membership.id}"
        key = create_api_key(tenant, ["users:write"])
        patch = {"patches": {"a": {"b": 1}}}

        for request in (
            {"path": f"{path}/meta_data", "json": patch},
            {"path": f"{membership_path}/active?is_active=false"},
            {"path": f"{membership_path}/active?is_active=true"},
            {"path": f"{membership_path}/role?role=viewer", "headers": {"If-Match": "*"}},
        ):
            assert statements("PATCH", token=token, **request) == ONE_CHANGE, request
        for request in (
            {"path": path, "json": {"first_name": "Ada"}},
            {"path": path, "json": {"is_active": False}},
            {"path": path, "json": {"is_active": True}, "headers": {"If-Match": "*"}},
            {"path": f"{path}/meta_data", "json": {"patches": {"a": 2}}, "token": key},
            {"path": f"{path}/meta_data", "json": {"patches": {"a": 3}}, "token": platform_token()},
        ):
            cost = statements("PATCH", **{"token": token, **request})
            assert cost == ONE_CHANGE + BESIDE, request

    def test_what_changes_nothing(self, tenant, token, statements):
        user = create_user(tenant, first_name="Ada")
        path = f"/v1/users/{user.id}"
        nothing = {"patches": {}}

        assert statements("PATCH", f"{path}/meta_data", token=token, json=nothing) == ONE_READ
        cost = statements("PATCH", path, token=token, json={"first_name": "Ada"})
        assert cost == ONE_READ + BESIDE

    def test_creates(self, token, statements):
        body = {"idp_user_id": "u", "email": "a@b.co"}

        assert statements("POST", "/v1/users", token=token, json=body) == ONE_CHANGE + BESIDE
