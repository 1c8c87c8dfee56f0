"""Every operation that takes ``If-Match`` or ``If-None-Match``, with versions known and gone."""

from app.audit.models import AuditEvent
from tests.changes import changes, make_world, prepare
from tests.database import rows
from tests.document import MAY_BE_MISSING, find_row, operations

GONE = '"999999"'


class TestEveryChange:
    def test_of_a_version_that_is_gone_is_412_and_leaves_no_row(self, app, api):
        world = make_world(app)
        wrong, count = [], 0
        for one in changes(app):
            if not one.takes_header("If-Match"):
                continue
            send = prepare(api, world, one)
            before = len(rows(AuditEvent))

            refused = send(headers={"If-Match": GONE})
            left = len(rows(AuditEvent)) - before
            accepted = send()

            if (refused.status_code, left, accepted.status_code // 100) != (412, 0, 2):
                wrong.append((one.name, refused.text, left, accepted.text))
            count += 1

        assert wrong == []
        assert count > 15


class TestEveryRead:
    def test_of_a_known_version_is_304(self, app, api):
        world = make_world(app)
        document = app.test_client().get("/openapi.json").get_json()
        wrong, count = [], 0
        for one in operations(document):
            if one.is_change or not one.names_a_row or not one.takes_header("If-None-Match"):
                continue
            path = one.path_of(find_row(api, one, world["tenant_id"], world["token"]))
            query = {"tenant_id": world["tenant_id"]} if one.takes_a_tenant else {}
            first = api.get(path, token=world["token"], query_string=query)
            if first.status_code == 404 and one.name in MAY_BE_MISSING:
                continue

            known = {"If-None-Match": first.headers["ETag"]}
            again = api.get(path, token=world["token"], query_string=query, headers=known)

            if (first.status_code, again.status_code, again.data) != (200, 304, b""):
                wrong.append((one.name, first.status_code, again.status_code))
            count += 1

        assert wrong == []
        assert count > 10
