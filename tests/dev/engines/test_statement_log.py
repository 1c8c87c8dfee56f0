"""The private PostgreSQL's log: it names the errors, and holds nothing personal."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from app.dev.engines.instance import Instance
from app.dev.engines.postgres import connect
from tests.factories import create_tenant, create_user, platform_token
from tests.running.serving import wait_until

MARK = "logged-canary"


@pytest.fixture
def log(app, instance: Instance):
    """Call it for what was logged since the test began."""
    path = instance.log("postgres")
    begin = path.stat().st_size

    def read() -> str:
        return path.read_bytes()[begin:].decode()

    return read


def personal(**values) -> dict:
    return {
        "email": f"{MARK}@example.com",
        "first_name": MARK,
        "meta_data": {MARK: f"{MARK} value"},
        **values,
    }


class TestStatementLog:
    def test_holds_nothing_of_a_refused_duplicate(self, api, log):
        query = {"tenant_id": str(create_tenant().id)}
        options = {"token": platform_token(), "query_string": query}
        body = personal(idp_user_id=f"{MARK}-subject")

        answers = [api.post("/v1/users", json=body, **options) for _ in range(2)]

        assert [answer.status_code for answer in answers] == [201, 409]
        assert "duplicate key value violates unique constraint" in log()
        assert MARK not in log()

    @pytest.mark.parametrize(
        ("interrupt", "logged"),
        [
            ("pg_cancel_backend", "canceling statement due to user request"),
            ("pg_terminate_backend", "terminating connection due to administrator command"),
        ],
    )
    def test_holds_nothing_of_an_interrupted_insert(self, api, instance, log, interrupt, logged):
        user = create_user(create_tenant())
        options = {"token": platform_token(), "query_string": {"tenant_id": str(user.tenant_id)}}
        body = personal(idp_user_id=user.idp_user_id)
        waiting = f"SELECT {interrupt}(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"

        with (
            ThreadPoolExecutor() as pool,
            closing(connect(instance)) as session,
            session.cursor() as cursor,
        ):
            cursor.execute("BEGIN")
            cursor.execute("DELETE FROM users WHERE id = %s", [str(user.id)])
            request = pool.submit(api.post, "/v1/users", json=body, **options)
            wait_until(lambda: cursor.execute(waiting) or cursor.rowcount)

        assert request.result().status_code in (409, 503)
        assert logged in log()
        assert MARK not in log()
