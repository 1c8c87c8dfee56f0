"""Every endpoint that changes something leaves its row in the audit trail."""

from app.audit.models import AuditEvent
from tests.changes import changes, make_world, prepare
from tests.database import rows

# Its example has secret headers, which are written without being compared.
ALWAYS_WRITTEN = {"PATCH /v1/webhook-endpoints/{endpoint_id}"}


class TestEveryChange:
    def test_leaves_its_row(self, app, api):
        world = make_world(app)

        wrong = [fault for one in changes(app) for fault in judge(api, world, one)]

        assert wrong == []

    def test_leaves_none_where_it_is_sent_again_and_changes_nothing(self, app, api):
        world = make_world(app)
        wrong, count = [], 0
        for one in changes(app):
            if one.method not in ("patch", "put") or one.name in ALWAYS_WRITTEN:
                continue
            send = prepare(api, world, one)
            first, known = send(), len(rows(AuditEvent))

            again = send()

            same = (again.status_code, again.data, again.headers.get("ETag"))
            expected = (200, first.data, first.headers.get("ETag"))
            if same != expected or len(rows(AuditEvent)) != known:
                wrong.append(one.name)
            count += 1

        assert wrong == []
        assert count > 10

    def test_leaves_its_rows_once_under_an_idempotency_key(self, app, api):
        world = make_world(app)
        wrong, count = [], 0
        for one in changes(app):
            if not one.takes_an_idempotency_key:
                continue
            send, headers = prepare(api, world, one), {"Idempotency-Key": one.name}
            first, known = send(headers=headers), len(rows(AuditEvent))

            again = send(headers=headers)

            is_replayed = again.headers.get("Idempotent-Replayed") == "true"
            if not is_replayed or again.status_code != first.status_code:
                wrong.append((one.name, again.status_code, again.text[:100]))
            if len(rows(AuditEvent)) != known:
                wrong.append((one.name, "a second row"))
            count += 1

        assert wrong == []
        assert count > 10


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
