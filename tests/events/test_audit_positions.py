"""The lasting order of the audit trail: from the sequencer, and of the rows of earlier releases."""

import pytest

from app import create_app
from app.audit.models import AuditEvent, AuditPosition
from app.events import positions
from app.events.models import Event
from app.users.models import User
from tests import database
from tests.factories import create_member, create_user, platform_token

AGE = "UPDATE audit_events SET created_at = created_at - interval '1 hour'"


@pytest.fixture
def changes(api, tenant):
    """Some changes that are events, and one between them that is not."""
    _, _, token = create_member(tenant, role="owner")
    user = create_user(tenant)
    path = f"/v1/users/{user.id}"

    def change(name):
        assert api.patch(path, token=token, json={"first_name": name}).status_code == 200

    change("Ada")
    notes = f"/v1/tenants/{tenant.id}/notes"
    assert api.put(notes, token=platform_token(), json={"text": "A note."}).status_code == 200
    change("Grace")
    return user


def order():
    """The ids of audit rows in their lasting order, with the positions."""
    rows = sorted(database.rows(AuditPosition), key=lambda row: (row.position, row.number))
    return [(row.id, row.position) for row in rows]


def trail():
    return sorted(database.rows(AuditEvent), key=lambda row: (row.created_at, row.id))


def test_every_audit_row_gets_the_position_of_its_event(api, changes):
    api.sequence()

    events = {row.id: row.position for row in database.rows(Event)}
    assert [row_id for row_id, _ in order()] == [row.id for row in trail()]
    assert sorted(events.values()) == list(range(1, len(events) + 1))
    assert all(events.get(row_id, place) == place for row_id, place in order())
    (note,) = database.rows(AuditEvent, action="tenant.notes_changed")
    assert note.id not in events
    assert dict(order())[note.id] == len(events) - 1
    kept = database.rows(AuditPosition, row_id=changes.id)
    assert {row.target_type for row in kept} == {"user"}
    assert len(kept) == 2
    now = database.row(User, id=changes.id)
    assert [row.version for row in kept] == [now.version - 1, now.version]
    assert kept[1].updated_at == now.updated_at


def test_rows_of_earlier_releases_are_ordered_once(app, api, changes, superuser):
    api.sequence()
    wanted = order()
    database.execute("DELETE FROM audit_positions")
    superuser.execute(AGE)

    with app.app_context():
        positions.order_older()
        first = database.rows(AuditPosition)
        positions.order_older()

    assert order() == wanted
    assert database.rows(AuditPosition) == first
    assert all(row.number < 0 for row in first)


def test_rows_that_wait_for_the_sequencer_are_left_to_it(app, api, changes, superuser):
    superuser.execute(AGE)

    with app.app_context():
        positions.order_older()
    first = database.rows(AuditPosition)
    api.sequence()

    assert first == []
    assert {row_id for row_id, _ in order()} == {row.id for row in trail()}
    assert all(row.number > 0 for row in database.rows(AuditPosition))


def test_the_order_is_continued_where_it_was_stopped(app, api, changes, superuser, monkeypatch):
    database.execute("DELETE FROM event_outbox")
    database.execute("INSERT INTO event_feed (id) VALUES (1)")
    superuser.execute(AGE)
    monkeypatch.setattr(positions, "BATCH", 1)

    with app.app_context():
        positions.order_older()

    assert [row_id for row_id, _ in order()] == [row.id for row in trail()]
    assert {place for _, place in order()} == {0}


def test_places_go_with_the_audit_rows(environment, api, changes, superuser):
    api.sequence()
    old = "00000000-0000-7000-8000-000000000001"  # of 1970
    superuser.execute("UPDATE audit_positions SET id = %s WHERE position = 1", [old])

    with create_app({**environment, "AUDIT_DAYS": "400"}).app_context():
        positions.remove_old()

    assert min(row.position for row in database.rows(AuditPosition)) == 2
