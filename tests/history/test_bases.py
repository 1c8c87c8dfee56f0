"""Bases of the past: when they are written, and what an erasure and retention leave of them."""

import itertools

import pytest

from app import create_app
from app.audit.models import AuditPosition, PastBase
from app.core.db.tenancy import PLATFORM_TENANT_ID
from app.events.jobs import remove_old_events
from app.history import bases
from app.history.jobs import add_bases as add_due_bases
from tests import database
from tests.history.exports import read_all
from tests.history.life import Life
from tests.history.writing import add_bases


@pytest.fixture
def life(api):
    """Thirty changes of three tenants, which have their positions for good."""
    life = Life(api, 3)
    for _ in range(30):
        life.change()
    api.sequence()
    return life


def count(table, **equal):
    return len(database.rows(table, **equal))


def positions_of(tenant_id):
    return sorted({row.position for row in database.rows(PastBase, tenant_id=tenant_id)})


class TestWriting:
    def test_there_is_one_after_so_many_changes_or_as_many_as_it_has_rows(self, app, life):
        add_bases(app, 4)

        for tenant in life.tenants:
            changes = [row.position for row in database.rows(AuditPosition, tenant_id=tenant["id"])]
            found = positions_of(tenant["id"])
            assert found[0] == sorted(changes)[3]
            for last, following in itertools.pairwise(found):
                between = sum(last < position <= following for position in changes)
                rows = count(PastBase, tenant_id=tenant["id"], position=last)
                assert between == max(4, rows)

    def test_a_tenant_with_few_changes_has_none(self, app, life):
        with app.app_context():
            add_due_bases()

        assert database.rows(PastBase) == []

    def test_a_tenant_that_is_older_than_the_order_has_one_at_the_end_of_its_old_rows(
        self, app, api, life, superuser
    ):
        old, new = life.tenants[0]["id"], life.tenants[1]["id"]
        last = max(row.position for row in database.rows(AuditPosition, tenant_id=old))
        superuser.execute(
            "UPDATE audit_positions SET number = number - (1::bigint << 62) WHERE tenant_id = %s",
            [old],
        )
        for tenant in (old, new):
            life.call("PATCH", f"/v1/tenants/{tenant}", {"name": life.name()})
        api.sequence()
        database.execute("UPDATE event_feed SET ordered_position = last_position")

        with app.app_context():
            add_due_bases()

        assert (positions_of(old), positions_of(new)) == ([last], [])
        now = max(row.position for row in database.rows(AuditPosition))
        for position in (last, now):
            assert read_all(position, with_bases=True) == read_all(position, with_bases=False)

    def test_nothing_is_written_that_may_still_change(self, app, life):
        database.execute("UPDATE event_feed SET ordered_position = 5")

        with app.app_context():
            while bases.add(PLATFORM_TENANT_ID, 1) or bases.add(life.tenants[0]["id"], 1):
                pass

        assert {row.position for row in database.rows(PastBase)} <= set(range(5))
        assert database.rows(PastBase)

    def test_the_job_looks_only_at_tenants_with_new_changes(self, app, life, monkeypatch):
        database.execute("UPDATE event_feed SET ordered_position = last_position")
        asked = []
        monkeypatch.setattr(bases, "add", lambda tenant_id: asked.append(tenant_id))
        with app.app_context():
            add_due_bases()
            seen = len(asked)
            add_due_bases()

        assert {str(tenant_id) for tenant_id in asked} >= {one["id"] for one in life.tenants}
        assert len(asked) == seen

    def test_bases_change_no_answer(self, app, life):
        add_bases(app, 3)
        last = max(row.position for row in database.rows(AuditPosition))

        for position in range(0, last + 1, 5):
            assert read_all(position, with_bases=True) == read_all(position, with_bases=False)


class TestErasure:
    @pytest.mark.parametrize("has_creation", [True, False])
    def test_nothing_of_the_person_is_left(self, app, api, life, has_creation):
        """The contact's address is changed later, and the name only is the person's."""
        tenant = life.tenants[0]["id"]
        body = {"idp_user_id": "canary-1", "email": "canary@example.com", "first_name": "Canary"}
        user = life.call("POST", "/v1/users", body, tenant_id=tenant)
        contact = {"primary_contact_email": "canary@example.com", "primary_contact_name": "Canary"}
        life.call("PATCH", f"/v1/tenants/{tenant}", contact)
        life.call("PATCH", f"/v1/users/{life.tenants[0]['users'][0]}/meta_data", {
            "patches": {"manager": "canary@example.com"}
        })  # fmt: skip
        write_base(app, api, life)
        other = {"primary_contact_email": "bob@example.com"}
        life.call("PATCH", f"/v1/tenants/{tenant}", other)
        write_base(app, api, life)
        if not has_creation:
            forget_first_changes(tenant)
        assert "canary" in text_of_bases()

        result = app.test_cli_runner().invoke(args=["users", "erase", user["id"], "--yes"])

        assert result.exit_code == 0, result.output
        assert "canary" not in text_of_bases()
        last = max(row.position for row in database.rows(AuditPosition))
        for position in positions_of(tenant):
            found = read_all(position, with_bases=True)
            assert "canary" not in str(found).lower()
            if has_creation:
                assert found == read_all(position, with_bases=False)
        assert "bob@example.com" in str(read_all(last, with_bases=True))


def write_base(app, api, life):
    """Change the first tenant until its next base is due, and write it."""
    tenant = life.tenants[0]["id"]
    before = len(positions_of(tenant))
    while len(positions_of(tenant)) == before:
        for _ in range(5):
            life.call("PATCH", f"/v1/tenants/{tenant}", {"name": life.name()})
        api.sequence()
        add_bases(app)


def forget_first_changes(tenant_id):
    """As retention does, up to the tenant's last base but one."""
    until = positions_of(tenant_id)[-2]
    database.execute("DELETE FROM audit_positions WHERE position <= :until", until=until)
    database.execute("DELETE FROM past_bases WHERE position < :until", until=until)


def text_of_bases():
    return "\n".join(
        row.text for row in database.query("SELECT b::text AS text FROM past_bases b")
    ).lower()


class TestRetention:
    def test_rows_that_are_older_than_the_trail_stay(self, app, api, environment, life, superuser):
        for _ in range(40):
            life.change()
        api.sequence()
        add_bases(app, 3)
        tenant = life.tenants[1]["id"]
        kept = positions_of(tenant)[1]
        wanted = read_all(kept, with_bases=True)
        old = "first_id_of(now() - interval '400 days')::text"
        superuser.execute(
            f"UPDATE audit_positions SET id = overlay({old} placing right(id::text, 18) from 19)::uuid"
            " WHERE position <= %s",
            [kept],
        )

        with create_app({**environment, "AUDIT_DAYS": "365"}).app_context():
            remove_old_events()

        assert positions_of(tenant)[0] == kept
        found = read_all(kept, with_bases=True)
        assert found["users"]
        assert [row for row in found["users"] if tenant in row] == [
            row for row in wanted["users"] if tenant in row
        ]
