"""Another database role in the place of the first, by the statements of docs/operations/secrets.md."""

import json
from collections.abc import Iterator
from typing import Any

import flask_migrate
import pytest
from psycopg2 import OperationalError

from app import create_app
from app.dev.engines.instance import APPLICATION_ROLE, Instance
from app.extensions import db
from tests import database
from tests.factories import create_member, create_tenant
from tests.running import documented

SECOND = f"{APPLICATION_ROLE}_2"


@pytest.fixture
def people(app) -> tuple[Any, str]:
    """A tenant and a token of its admin's, and another tenant with people of its own."""
    tenant, other = create_tenant(), create_tenant()
    create_member(other)
    return tenant, create_member(tenant)[2]


@pytest.fixture
def rotated(people, environment, instance: Instance) -> Iterator[dict[str, str]]:
    """The service's environment with the second role; the first may not log in any more."""
    statements = documented.blocks("sql", "secrets.md")[0]
    try:
        for statement in statements.replace("PASSWORD '…' ", "").split(";\n"):
            if statement.strip():
                documented.execute(instance, statement)
        yield {**environment, "DATABASE_URL": instance.database_url(SECOND)}
    finally:
        documented.execute(instance, f"ALTER ROLE {APPLICATION_ROLE} LOGIN")
        documented.execute(instance, f"DROP ROLE IF EXISTS {SECOND}")


class TestSecondRole:
    def test_serves_requests_under_row_level_security(self, people, rotated):
        tenant, token = people
        second = create_app(rotated)
        headers = {"Authorization": f"Bearer {token}"}
        body = {"idp_user_id": "u", "email": "u@example.com"}

        client = second.test_client()
        created = client.post("/v1/users", headers=headers, json=body)
        listed = client.get("/v1/users", headers=headers).get_json()["data"]
        ended = second.test_cli_runner().invoke(args=["doctor", "--json"])
        with second.app_context():
            db.engine.dispose()

        findings = {found["check"]: found for found in json.loads(ended.stdout)}
        assert created.status_code == 201
        assert {row["tenant_id"] for row in listed} == {str(tenant.id)}
        assert findings["role"]["found"] == f"{SECOND} is a plain role"

    def test_the_release_goes_on_naming_the_first(self, app, rotated):
        with app.app_context():
            db.engine.dispose()
            flask_migrate.upgrade()

            with pytest.raises(OperationalError, match="not permitted to log in"):
                database.query("SELECT")
