"""/v1/imports."""

from gzip import compress

import pytest

from app.core.jobs.queues import Queue, connection, queue_named
from app.imports.files import PIECE
from app.imports.models import Import, ImportPiece
from app.imports.routes import MAX_BODY
from app.tenants.models import Tenant
from tests.database import row, rows
from tests.factories import platform_token
from tests.imports.files import as_file, bring_in, finish, post, snapshot, tenant_line, user_line

MEDIA_TYPES = (
    "The Content-Type must be application/x-ndjson or text/plain or application/octet-stream."
)


@pytest.fixture
def large(app):
    """A file of several pieces, whose lines are cut by their borders."""
    spaces = b" " * 1000  # in each line
    lines = [tenant_line(f"o{n}") for n in range(800)]
    return as_file(tenant_line(), *lines).replace(b"}\n", spaces + b"}\n")


class TestCreate:
    def test_stores_the_file_and_queues_a_job(self, app, api, large):
        answer = post(api, large)

        shown = answer.get_json()["data"]
        with app.app_context():
            queued = queue_named(Queue.IMPORTS, connection()).count
        assert (answer.status_code, queued) == (202, 1)
        assert answer.headers["Location"] == f"/v1/imports/{shown['id']}"
        assert (shown["state"], shown["size"]) == ("pending", len(large))
        assert (shown["lines_total"], shown["lines_done"]) == (801, 0)
        assert [len(one.body) for one in rows(ImportPiece)][:-1] == [PIECE] * 3
        assert b"".join(one.body for one in rows(ImportPiece)) == large

    def test_with_an_idempotency_key_stores_one_file(self, api, large):
        first, second = (post(api, large, headers={"Idempotency-Key": "k"}) for _ in range(2))

        assert first.get_json() == second.get_json()
        assert len(rows(Import)) == 1
        assert b"".join(one.body for one in rows(ImportPiece)) == large

    @pytest.mark.parametrize(
        ("headers", "fault"),
        [
            *(
                ({"Content-Type": name}, MEDIA_TYPES)
                for name in ("application/json", "text/csv", "")
            ),
            ({"Content-Encoding": "gzip"}, "The body must have no Content-Encoding."),
        ],
    )
    def test_refuses_another_media_type_or_encoding(self, api, headers, fault):
        answer = post(api, compress(as_file(tenant_line())), headers=headers)

        assert (answer.status_code, answer.get_json()) == (415, {"detail": fault})
        assert rows(Import) == []

    @pytest.mark.parametrize(
        "media_type", ["text/plain; charset=utf-8", "application/octet-stream"]
    )
    def test_takes_the_media_types_that_generated_clients_send(self, api, media_type):
        """The last line may be without an end."""
        file = as_file(tenant_line("a"), tenant_line("b")).rstrip()

        answer = post(api, file, headers={"Content-Type": media_type})

        assert answer.status_code == 202
        assert answer.get_json()["data"]["lines_total"] == 2

    def test_refuses_an_empty_body(self, api):
        answer = post(api, b"")

        (entry,) = answer.get_json()["detail"]
        assert (answer.status_code, entry["loc"]) == (422, ["body"])

    @pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k"}])
    def test_refuses_more_than_50_mib_and_stores_nothing(self, api, headers):
        answer = post(api, b"\n" * (MAX_BODY + 1), headers=headers)

        assert answer.status_code == 413
        assert rows(Import) == []


class TestCheck:
    def test_says_what_an_import_would_do_and_changes_nothing(self, app, api):
        lines = (tenant_line(), user_line("ada"), user_line("bo", email="no address"), b"{")
        before = snapshot()

        checked = post(api, as_file(*lines), path="/v1/imports/check").get_json()["data"]
        unchanged = snapshot()
        counts, _ = bring_in(app, api, *lines)

        assert unchanged == before
        assert (checked["lines_total"], checked["lines_failed"]) == (4, 2)
        assert [each["line"] for each in checked["faults"]] == [3, 4]
        assert checked["counts"] == counts

    def test_refuses_more_than_a_mebibyte(self, api):
        content = b" " * (1024 * 1024 + 1)

        assert post(api, content, path="/v1/imports/check").status_code == 413


class TestGet:
    def test_shows_progress_counts_and_faults(self, app, api):
        file = as_file(tenant_line(), user_line("ada", email=5))
        import_id = post(api, file).get_json()["data"]["id"]
        finish(app, import_id)

        answer = api.get(f"/v1/imports/{import_id}", token=platform_token())

        shown = answer.get_json()["data"]
        (fault,) = shown["faults"]
        none = {"updated": 0, "unchanged": 0}
        assert (shown["state"], shown["lines_done"], shown["lines_failed"]) == ("completed", 2, 1)
        assert shown["counts"] == {
            "tenant": {"created": 1, "failed": 0, **none},
            "user": {"created": 0, "failed": 1, **none},
        }
        assert (fault["line"], fault["type"]) == (2, "user")
        assert (fault["idp_org_id"], fault["name"]) == ("org", "ada")
        (error,) = fault["errors"]
        assert (error["type"], error["loc"]) == ("string_type", ["body", "email"])
        assert (error["msg"], error["input"]) == ("Input should be a valid string", 5)


class TestList:
    def test_shows_imports_by_state(self, app, api):
        done, waiting = (
            post(api, as_file(tenant_line(name))).get_json()["data"]["id"] for name in "ab"
        )
        finish(app, done)

        def listed(state):
            answer = api.get("/v1/imports", token=platform_token(), query_string={"state": state})
            return [one["id"] for one in answer.get_json()["data"]]

        assert (listed("completed"), listed("pending")) == ([done], [waiting])


class TestPieces:
    def test_are_applied_across_their_borders_and_removed(self, app, api, large):
        import_id = post(api, large).get_json()["data"]["id"]

        finish(app, import_id)

        assert (row(Import).lines_done, row(Import).lines_failed) == (801, 0)
        assert len(rows(Tenant)) == 801
        assert rows(ImportPiece) == []
