"""Every endpoint that changes something leaves its row in the audit trail."""

from app.audit.models import AuditEvent
from tests.changes import changes, make_world, prepare
from tests.database import rows


class TestEveryChange:
    def test_leaves_its_row(self, app, api):
        world = make_world(app)

        wrong = [fault for one in changes(app) for fault in judge(api, world, one)]

        assert wrong == []


def judge(api, world, operation) -> list[str]:
    """What is wrong with what the operation leaves behind."""
    send = prepare(api, world, operation)
    known = {event.id for event in rows(AuditEvent)}
    request_id = f"audited-{len(known)}"
    answer = send(headers={"X-Request-Id": request_id})
    if not 200 <= answer.status_code < 300:
        return [f"{operation.name}: {answer.status_code} {answer.text[:200]}"]
    left = [event for event in rows(AuditEvent) if event.id not in known]
    if not left:
        return [f"{operation.name}: no row"]
    places = [(event.target_type, event.target_id, event.action) for event in left]
    if len(set(places)) != len(places):
        return [f"{operation.name}: a change twice, {places}"]
    return [
        f"{operation.name}: {event.action} by {event.actor} for {event.request_id}"
        for event in left
        if event.actor != "platform:platform-operator"
        or event.request_id != request_id
        or event.before == event.after
    ]
