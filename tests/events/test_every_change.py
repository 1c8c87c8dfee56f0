"""Every endpoint that changes something leaves its events, as the document describes them."""

from app.audit.models import AuditEvent
from app.audit.outbox import EVENT_TYPES
from tests.changes import changes, make_world, prepare
from tests.database import rows
from tests.events.support import faults, read


class TestEveryChange:
    def test_leaves_an_event_for_each_audit_row(self, app, api):
        world = make_world(app)
        document = app.test_client().get("/openapi.json").get_json()
        wrong = []
        for one in changes(app):
            send = prepare(api, world, one)
            before = read(api, world["token"], limit=1000)["next_cursor"]
            known = {row.id for row in rows(AuditEvent)}

            answer = send()

            found = read(api, world["token"], after=before)["data"]
            left = [row for row in rows(AuditEvent) if row.id not in known]
            expected = {f"evt_{row.id.hex}" for row in left if row.action in EVENT_TYPES}
            if not 200 <= answer.status_code < 300 or {event["id"] for event in found} != expected:
                wrong.append((one.name, answer.status_code, found))
            wrong += [(one.name, fault) for event in found for fault in faults(document, event)]
            wrong += [(one.name, event) for event in found if is_other(answer, event)]

        assert wrong == []


def is_other(answer, event) -> bool:
    """Whether an event is about the answer's row, but with other data."""
    row = (answer.get_json(silent=True) or {}).get("data")
    if not isinstance(row, dict) or row.get("id") != event["data"].get("id"):
        return False
    row.pop("secret", None)
    return list(row.items()) != list(event["data"].items())
