"""What a view reads first, read with the credential: used, held by nobody else, never stale."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from uuid import UUID

import pytest
from flask import Flask
from sqlalchemy import event, update
from uuid_utils.compat import uuid7

from app.auth import principals
from app.auth.guard import Requires
from app.core.db import ahead, queries, statements, tenancy, transactions
from app.custom_fields.search_index import query as search
from app.extensions import db
from app.users.models import User
from app.users.service import RULES
from tests import factories
from tests.changes import make_world, prepare
from tests.concurrency import at_once
from tests.custom_fields.fields import build_index, create_field
from tests.document import operations

USERS = User.__table__
RENAME = update(USERS).where(USERS.c.first_name == "old").values(first_name="new")


@pytest.fixture
def tenant(app: Flask):
    return factories.create_tenant()


@pytest.fixture
def token(tenant) -> str:
    return factories.create_member(tenant, role="owner")[2]


@pytest.fixture
def sent(app: Flask) -> Iterator[list[str]]:
    """The statements that are sent."""
    found: list[str] = []

    def note(_connection, _cursor, statement, *_):
        found.append(statement)

    with app.app_context():
        engine = db.engine
    event.listen(engine, "before_cursor_execute", note)
    yield found
    event.remove(engine, "before_cursor_execute", note)


def reading_ahead(app: Flask) -> dict[str, Requires]:
    """The operations whose views name what they read first."""
    return {
        f"{method} {rule.rule.replace('<', '{').replace('>', '}')}": access
        for rule in app.url_map.iter_rules()
        for method in rule.methods - {"HEAD", "OPTIONS"}
        if getattr(access := getattr(app.view_functions[rule.endpoint], "access", None), "first", 0)
    }


class TestEveryViewThatNamesWhatItReadsFirst:
    def test_reads_it_with_the_credential_alone(self, app, api, sent):
        world = make_world(app)
        place = SimpleNamespace(id=UUID(world["tenant_id"]), idp_org_id=world["idp_org_id"])
        world["token"] = factories.create_member(place, role="owner")[2]
        factories.create_member(place, role="viewer")  # the newest is the one that is changed
        build_index(app, create_field(place, field_key="desk", is_searchable=True))
        document = app.test_client().get("/openapi.json").get_json()
        named = reading_ahead(app)
        asked = [one for one in operations(document) if one.name in named]
        wrong = []
        for one in asked:
            send = prepare(api, world, one)
            statement = search.SEARCHABLE
            if one.names_a_row:
                statement = named[one.name].first(str(uuid7())).statement
            else:
                send.keywords["query_string"]["meta_data.desk"] = "a"
            sent.clear()
            answer = send()
            assert answer.status_code == 200, answer.text
            with_credential, *further = sent
            if "LATERAL" not in with_credential or statements._plans[statement].text in further:
                wrong.append(f"{one.name}: {sent}")

        assert wrong == []
        assert len(asked) == len(named) > 15


class TestAnswers:
    @pytest.mark.parametrize("credential", ["user", "key"])
    def test_are_of_the_askers_tenant(self, api, tenant, token, credential):
        if credential == "key":
            token = factories.create_api_key(tenant, ["users:read", "users:write"])
        ours = factories.create_user(tenant)
        theirs = factories.create_user(factories.create_tenant())
        patch = {"patches": {"a": 1}}

        for method, path, body in (("GET", "", None), ("PATCH", "/meta_data", patch)):
            for user, status in ((ours, 200), (theirs, 404)) * 8:  # prepared after a while
                answer = api.request(method, f"/v1/users/{user.id}{path}", token=token, json=body)
                assert answer.status_code == status, answer.text

    @pytest.mark.parametrize("path", ["/v1/users/1", "/v1/users/1/meta_data"])
    def test_an_id_that_is_none_is_unknown(self, api, token, path):
        method = "PATCH" if path.endswith("meta_data") else "GET"
        body = {"patches": {}} if method == "PATCH" else None

        assert api.request(method, path, json=body).status_code == 401
        assert api.request(method, path, token=token, json=body).status_code == 404

    def test_of_a_platform_credential_are_of_the_tenant_that_it_names(self, app, api, tenant):
        home, other = tenant, factories.create_tenant()
        for place in (home, other):
            build_index(app, create_field(place, field_key="desk", is_searchable=True))
            factories.create_user(place, meta_data={"desk": "a"})
        token = factories.platform_token(tenant=home)

        for place in (home, other):
            query = {"tenant_id": str(place.id), "meta_data.desk": "b"}
            answer = api.get("/v1/users", token=token, query_string=query)
            assert (answer.status_code, answer.get_json()["data"]) == (200, [])

    def test_are_waited_for_by_nobody_who_is_refused(self, api, tenant, token):
        user = factories.create_user(tenant)
        viewer = factories.create_member(tenant, role="viewer")[2]
        path = f"/v1/users/{user.id}/meta_data"
        with factories.platform_transaction():
            queries.lock_row(User, user.id)

            answers = at_once(
                [
                    partial(api.patch, path, token=viewer, json={"patches": {"a": 1}}),
                    partial(api.patch, path, token=token, json={"patches": 1}),
                ]
            )

        assert [answer.status_code for answer in answers] == [403, 422]


class TestStaleness:
    """The answer is the first statement's or nobody's."""

    @pytest.fixture
    def user(self, app, tenant):
        user = factories.create_user(tenant, first_name="old")
        factories.create_membership(tenant, user, role="owner")
        with app.app_context(), transactions.transaction():
            found = ahead.find_asker(
                principals.USER,
                {"subject": user.idp_user_id, "org_id": tenant.idp_org_id},
                queries.locking(User, RULES)(str(user.id)),
                may=principals._roles_with("users:write"),
            )
            tenancy.note(tenancy.Scope(found.tenant_id))
            yield user

    def read(self, user) -> str:
        row, _ = queries.lock_with(User, user.id, RULES)
        return row.first_name

    def test_it_is_given_once(self, user, sent):
        assert [self.read(user), self.read(user)] == ["old", "old"]
        assert len(sent) == 1

    def test_it_is_dropped_where_something_is_written(self, user):
        statements.write(RENAME)

        assert self.read(user) == "new"

    def test_it_is_dropped_where_the_session_is_used(self, user):
        db.session.execute(RENAME)

        assert self.read(user) == "new"

    def test_it_is_dropped_where_something_else_is_read(self, user, sent):
        queries.get_row(User, user.id)

        assert self.read(user) == "old"
        assert len(sent) == 2
