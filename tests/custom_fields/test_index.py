"""The search index: built, kept current, removed, resumed."""

from datetime import timedelta

import pytest
from sqlalchemy import text

from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.core.db.statements import Statement
from app.core.db.transactions import current_transaction
from app.core.jobs.queues import Queue, connection, queue_named
from app.custom_fields import service
from app.custom_fields.jobs import STALLED, resume_search_indexes
from app.custom_fields.models import FieldIndex
from app.custom_fields.search_index import builder
from app.custom_fields.search_index.index_state import get_index
from app.custom_fields.values.rules import rules_of
from tests.concurrency import at_once
from tests.custom_fields.fields import (
    analyze,
    build_index,
    create_field,
    create_users,
    index_rows,
    run_jobs,
    wrong_rows,
)
from tests.database import execute
from tests.factories import (
    create_member,
    create_user,
    platform_token,
    platform_transaction,
)


@pytest.fixture
def patch(api):
    """Patch a user's metadata as the platform."""

    def send(user, patches):
        path = f"/v1/users/{user.id}/meta_data"
        answer = api.patch(path, token=platform_token(), json={"patches": patches})
        assert answer.status_code == 200, answer.get_json()

    return send


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(builder, "BATCH", 3)
    monkeypatch.setattr(builder, "DELETED_AT_ONCE", 3)


def state_of(field) -> FieldIndex:
    with platform_transaction():
        return get_index(field.id)


def texts(field) -> list[str]:
    return [row[2] for row in index_rows(field)]


def change(field, **values):
    with platform_transaction():
        service.update(field.id, values, actor=SYSTEM_CLI)


def archive(field):
    with platform_transaction():
        service.archive(field.id, actor=SYSTEM_CLI)


class TestLifeOfAnIndex:
    def test_a_worker_builds_removes_and_builds_again(self, app, api, tenant):
        users = [create_user(tenant, meta_data={"key": f"v{number}"}) for number in range(5)]
        field = create_field(tenant, field_key="key", is_searchable=True)
        path, token = f"/v1/custom-fields/{field.id}", platform_token()

        def shown():
            answer = api.get(f"{path}/index", token=token).get_json()["data"]
            return [answer[name] for name in ("state", "done", "total", "error", "built_version")]

        before = shown()
        run_jobs(app)
        built, rows = shown(), index_rows(field)
        api.post(f"{path}/archive", token=token)
        archived = shown()
        run_jobs(app)
        removed = index_rows(field)
        api.post(f"{path}/restore", token=token, json={"confirm": True})
        run_jobs(app)

        assert before == ["building", 0, 0, None, None]
        assert built == ["ready", 5, 5, None, 1]
        assert [row[:3] for row in rows] == [(user.id, 0, f"v{n}") for n, user in enumerate(users)]
        assert archived == ["none", 0, 0, None, None]
        assert removed == []
        assert shown() == ["ready", 5, 5, None, 3]
        assert index_rows(field) == rows

    def test_turning_searchable_off_removes_the_rows(self, app, tenant):
        create_user(tenant, meta_data={"key": "a"})
        field = create_field(tenant, field_key="key", is_searchable=True)
        build_index(app, field)

        change(field, is_searchable=False)
        run_jobs(app)

        assert index_rows(field) == []
        assert state_of(field).state == "none"

    def test_other_changes_leave_it_alone(self, app, tenant):
        field = create_field(tenant, is_searchable=True)
        build_index(app, field)

        change(field, label="Other", is_required=True)

        assert state_of(field).state == "ready"


class TestWrites:
    def test_rows_follow_every_change_of_a_value(self, app, tenant, patch):
        user = create_user(tenant, meta_data={"key": "old"})
        field = create_field(tenant, field_key="key", is_searchable=True)
        build_index(app, field)
        seen = []

        for value in ("new", None, "again", "again"):
            patch(user, {"key": value})
            seen.append(texts(field))

        assert seen == [["new"], [], ["again"], ["again"]]

    def test_options_come_and_go_one_by_one(self, app, tenant, patch):
        user = create_user(tenant)
        options = ["a", "b", "c"]
        field = create_field(
            tenant, field_key="k", field_type="multi_select", options=options, is_searchable=True
        )
        build_index(app, field)
        seen = []

        for value in (["a", "b", "c"], ["c"], ["b", "c"], [], ["a"], None):
            patch(user, {"k": value})
            seen.append(texts(field))

        assert seen == [["a", "b", "c"], ["c"], ["b", "c"], [], ["a"], []]

    def test_a_new_user_is_indexed_at_once(self, app, api, tenant):
        _, _, token = create_member(tenant)
        field = create_field(tenant, field_key="key", is_searchable=True)
        build_index(app, field)
        body = {"idp_user_id": "u", "email": "a@b.co", "meta_data": {"key": "new"}}

        created = api.post("/v1/users", token=token, json=body).get_json()["data"]

        assert [(str(row[0]), row[2]) for row in index_rows(field)] == [(created["id"], "new")]

    def test_a_write_that_fails_leaves_no_row(self, app, api, tenant):
        user = create_user(tenant)
        field = create_field(tenant, field_key="key", is_searchable=True)
        build_index(app, field)
        create_field(tenant, field_key="number", field_type="integer")
        patches = {"key": "new", "number": "x"}

        api.patch(
            f"/v1/users/{user.id}/meta_data", token=platform_token(), json={"patches": patches}
        )

        assert index_rows(field) == []

    def test_all_types_keep_what_a_build_would_write(self, app, tenant, patch):
        user = create_user(tenant)
        values = {
            "text": "x" * 300,
            "integer": 2**53 + 1,
            "decimal": "0.10000000000000000001",
            "boolean": False,
            "date": "0001-01-01",
            "datetime": "2024-05-01T10:00:00.5+02:00",
            "email": "ada@example.com",
            "url": "https://example.com",
            "phone": "+4930901820",
        }
        fields = [
            create_field(tenant, field_key=type_, field_type=type_, is_searchable=True)
            for type_ in values
        ]
        for field in fields:
            build_index(app, field)

        patch(user, values)

        assert [wrong_rows(field) for field in fields] == [set()] * len(fields)
        assert all(len(index_rows(field)) == 1 for field in fields)


class TestBuild:
    def test_goes_on_where_it_was_left(self, app, tenant, small_batches):
        users = [create_user(tenant, meta_data={"key": "a"}) for _ in range(8)]
        field = create_field(tenant, field_key="key", is_searchable=True)

        with app.app_context():
            begun = next(builder.work(tenant.id, field.id))
            rest = list(builder.work(tenant.id, field.id))

        assert (begun.done, begun.total, begun.is_settled) == (3, 8, False)
        assert [progress.done for progress in rest] == [6, 8]
        assert len(index_rows(field)) == len(users)

    def test_a_batch_reads_no_more_than_it_indexes(self, app, tenant):
        """Though PostgreSQL has no statistics of the tenant, it does not read and sort all of it."""
        analyze(app)
        create_users(tenant, 2000)
        batch = builder.next_batch("user")
        values = {"tenant_id": tenant.id, "field_key": "note", "position": builder.BEFORE_ALL}

        with platform_transaction():
            builder.DISABLE_SORT.execute()
            explained = current_transaction().execute(
                f"EXPLAIN {batch.text}", {**batch.constants, **values, "limit": 500}
            )
            plan = "\n".join(line for (line,) in explained.fetchall())

        assert "Sort" not in plan
        assert "Index Scan" in plan

    def test_misses_nothing_that_is_written_meanwhile(self, app, tenant, patch, small_batches):
        users = [create_user(tenant, meta_data={"key": "old"}) for _ in range(9)]
        field = create_field(tenant, field_key="key", is_searchable=True)

        with app.app_context():
            steps = builder.work(tenant.id, field.id)
            next(steps)
            patch(users[0], {"key": "behind"})
            patch(users[1], {"key": None})
            patch(users[8], {"key": "ahead"})
            created = create_user(tenant)
            patch(created, {"key": "late"})
            list(steps)

        assert texts(field) == ["behind", *["old"] * 6, "ahead", "late"]
        assert wrong_rows(field) == set()

    def test_two_builders_take_turns(self, app, tenant, small_batches):
        for number in range(20):
            create_user(tenant, meta_data={"key": f"v{number}"})
        field = create_field(tenant, field_key="key", is_searchable=True)

        at_once([lambda: build_index(app, field)] * 2)

        assert state_of(field).done == 20
        assert wrong_rows(field) == set()

    def test_overwrites_what_an_earlier_removal_left(self, app, tenant, patch, small_batches):
        options = ["a", "b", "c"]
        users = [create_user(tenant, meta_data={"k": options}) for _ in range(4)]
        field = create_field(
            tenant, field_key="k", field_type="multi_select", options=options, is_searchable=True
        )
        build_index(app, field)

        change(field, is_searchable=False)
        with app.app_context():
            next(builder.work(tenant.id, field.id))
        patch(users[3], {"k": ["b"]})
        change(field, is_searchable=True)
        build_index(app, field)

        assert len(index_rows(field)) == 10
        assert wrong_rows(field) == set()

    def test_an_archive_in_the_middle_turns_it_into_a_removal(self, app, tenant, small_batches):
        for _ in range(7):
            create_user(tenant, meta_data={"key": "a"})
        field = create_field(tenant, field_key="key", is_searchable=True)

        with app.app_context():
            steps = builder.work(tenant.id, field.id)
            next(steps)
            archive(field)
            last = list(steps)[-1]

        assert (last.state, last.is_settled) == ("none", True)
        assert index_rows(field) == []

    def test_an_unexpected_error_is_shown_and_ends_it(self, app, tenant, monkeypatch):
        create_user(tenant, meta_data={"key": "a"})
        field = create_field(tenant, field_key="key", is_searchable=True)
        monkeypatch.setattr(builder, "entries_of", lambda *_: 1 / 0)

        with pytest.raises(ZeroDivisionError):
            build_index(app, field)

        index = state_of(field)
        assert (index.state, index.is_settled) == ("failed", True)
        assert "ZeroDivisionError" in index.error

    def test_an_error_of_the_database_leaves_it_to_be_resumed(self, app, tenant, monkeypatch):
        create_user(tenant, meta_data={"key": "a"})
        field = create_field(tenant, field_key="key", is_searchable=True)
        terminate = Statement("terminate", text("SELECT pg_terminate_backend(pg_backend_pid())"))
        monkeypatch.setattr(builder, "_build", lambda *_: terminate.scalar())

        with pytest.raises(Exception, match="terminat"):
            build_index(app, field)

        monkeypatch.undo()
        assert state_of(field).state == "building"
        build_index(app, field)
        assert state_of(field).state == "ready"


class TestResume:
    def test_queues_the_unfinished_that_nobody_works_on(self, app, tenant):
        stalled, fresh, ready = [create_field(tenant, is_searchable=True) for _ in range(3)]
        build_index(app, ready)
        for field in (stalled, ready):
            execute(
                "UPDATE custom_field_indexes SET updated_at = :moment WHERE field_id = :field",
                moment=utcnow() - STALLED - timedelta(seconds=1),
                field=field.id,
            )
        with app.app_context():
            queue = queue_named(Queue.INDEXES, connection())
            queue.empty()
            resume_search_indexes()
            resume_search_indexes()
            queued = [job.args for job in queue.jobs]

        assert queued == [[str(tenant.id), str(stalled.id)]]
        run_jobs(app)
        assert (state_of(stalled).state, state_of(fresh).state) == ("ready", "building")


class TestRaces:
    def test_rules_that_were_read_are_held_until_the_end(self, app, tenant):
        held = text(
            "SELECT mode FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        )
        with platform_transaction():
            rules_of(tenant.id, "user")

            assert Statement("locks", held).scalars() == ["ShareLock"]

    def test_becoming_searchable_waits_for_writers_that_do_not_know_it(self, app, api, tenant):
        users = [create_user(tenant) for _ in range(4)]
        field = create_field(tenant, field_key="key")
        token = platform_token()

        def write(user):
            for number in range(15):
                path = f"/v1/users/{user.id}/meta_data"
                patches = {"key": f"v{number}" if number % 3 else None}
                answer = api.patch(path, token=token, json={"patches": patches})
                assert answer.status_code == 200

        def toggle():
            for searchable in (True, False, True, False, True):
                change(field, is_searchable=searchable)
                build_index(app, field)

        at_once([toggle, *(lambda user=user: write(user) for user in users)])
        build_index(app, field)

        assert state_of(field).state == "ready"
        assert wrong_rows(field) == set()

    def test_users_created_meanwhile_are_not_missed(self, app, api, tenant):
        field = create_field(tenant, field_key="key")
        token = platform_token()

        def create(worker):
            for number in range(10):
                body = {
                    "idp_user_id": f"{worker}-{number}",
                    "email": f"u{worker}.{number}@example.com",
                    "meta_data": {"key": "v"},
                }
                path = f"/v1/users?tenant_id={tenant.id}"
                assert api.post(path, token=token, json=body).status_code == 201

        def enable():
            change(field, is_searchable=True)
            build_index(app, field)

        at_once([enable, *(lambda worker=worker: create(worker) for worker in range(3))])

        assert wrong_rows(field) == set()
        assert len(index_rows(field)) == 30
