"""Building the terms of rows that have none."""

import pytest

from app.core.actors import SYSTEM_CLI
from app.core.jobs import slices
from app.core.jobs.queues import Queue, connection, queue_named
from app.search import builder, jobs
from app.search.models import EntityType, SearchBuild
from app.users import service as users
from tests import database
from tests.database import platform_transaction
from tests.factories import create_subscription, create_tenant, create_user
from tests.search.finding import expected_terms, terms_of


@pytest.fixture
def people(app):
    tenants = create_tenant(), create_tenant()
    return [create_user(tenants[number % 2], first_name=f"Name {number}") for number in range(7)]


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(builder, "BATCH", 3)


def restart(entity_type=EntityType.USER):
    with platform_transaction():
        builder.restart(entity_type)


def build(app, entity_type=EntityType.USER):
    with app.app_context():
        return [(one.done, one.total, one.is_settled) for one in builder.work(entity_type)]


def has_terms(user):
    return terms_of(user) == expected_terms(EntityType.USER, user)


class TestBuild:
    def test_goes_on_batch_by_batch_over_all_tenants(self, app, people, small_batches):
        restart()

        steps = build(app)

        assert steps == [(3, 7, False), (6, 7, False), (7, 7, True)]
        assert all(map(has_terms, people))

    def test_continues_where_it_was_interrupted(self, app, people, small_batches):
        restart()
        with app.app_context():
            next(builder.work(EntityType.USER))

        restart()

        assert build(app) == [(6, 7, False), (7, 7, True)]
        assert all(map(has_terms, people))

    def test_of_other_types_too(self, app):
        tenant = create_tenant(name="Acme")
        subscription = create_subscription(tenant)
        for entity_type in EntityType:
            restart(entity_type)
            build(app, entity_type)

        assert terms_of(tenant) == expected_terms(EntityType.TENANT, tenant)
        assert terms_of(subscription) == expected_terms(EntityType.SUBSCRIPTION, subscription)

    def test_that_has_ended_starts_again(self, app, people):
        restart()
        build(app)
        database.execute("DELETE FROM search_terms")

        restart()
        build(app)

        assert all(map(has_terms, people))

    def test_does_not_bring_back_what_a_write_has_removed(self, app, people, small_batches):
        restart()
        with app.app_context():
            next(builder.work(EntityType.USER))
        with platform_transaction():
            for user in people:
                users.update(user.id, {"first_name": "Changed"}, actor=SYSTEM_CLI)

        build(app)

        for user in people:
            assert terms_of(user) == expected_terms(
                EntityType.USER, user._replace(first_name="Changed")
            )

    def test_that_nobody_asked_for_does_nothing(self, app, people):
        assert build(app) == []


class TestJobs:
    def test_a_build_that_nobody_works_on_is_queued(self, app, people):
        restart()
        with app.app_context():
            jobs.resume_search_builds()
            assert queue_named(Queue.INDEXES, connection()).count == 0

            database.execute("UPDATE search_builds SET updated_at = now() - interval '1 minute'")
            jobs.resume_search_builds()
            jobs.resume_search_builds()

            (queued,) = queue_named(Queue.INDEXES, connection()).jobs
        assert list(queued.args) == ["user"]

    def test_the_job_builds_and_goes_to_the_end_of_the_queue_after_its_turn(
        self, app, people, small_batches, monkeypatch
    ):
        monkeypatch.setattr(slices, "TURN", 0)
        restart()

        with app.app_context():
            jobs.build_search_terms("user")
            assert queue_named(Queue.INDEXES, connection()).count == 1
            jobs.build_search_terms("user")
            jobs.build_search_terms("user")

        assert database.row(SearchBuild).is_settled
        assert all(map(has_terms, people))
