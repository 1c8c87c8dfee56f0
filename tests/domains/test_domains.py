"""/v1/domains: names, the verification, and who may set a rule."""

import gzip
import hashlib
from datetime import timedelta
from types import SimpleNamespace

import dns.rcode
import pytest

from app.auth.permissions import Permission
from app.core.clock import utcnow
from app.domains import checks, domain_names
from app.domains.domain_names import FREE_MAIL
from app.domains.models import Domain
from app.events.models import OutboxEvent
from tests import database
from tests.concurrency import at_once
from tests.domains.dns_server import failing, records, silence
from tests.factories import (
    create_api_key,
    create_domain,
    create_member,
    create_tenant,
    platform_token,
)

PATH = "/v1/domains"


@pytest.fixture
def create(api, admin):
    return lambda name="example.com", token=admin, **body: api.post(
        PATH, token=token, json={"name": name, **body}
    )


@pytest.fixture
def verify(api, admin):
    return lambda domain_id, token=admin: api.post(f"{PATH}/{domain_id}/verify", token=token)


def row(domain_id):
    return database.row(Domain, id=domain_id)


def actions(domain_id):
    found = database.query(
        "SELECT action, actor FROM audit_events WHERE target_id = :id ORDER BY id",
        id=str(domain_id),
    )
    return [tuple(one) for one in found]


class TestCreate:
    def test_tells_the_record_to_set(self, create):
        answer = create("Bücher.Example.COM.")

        assert answer.status_code == 201
        domain = answer.json["data"]
        assert domain["name"] == "xn--bcher-kva.example.com"
        assert domain["display_name"] == "bücher.example.com"
        assert domain["record_name"] == "_controlplane-challenge.xn--bcher-kva.example.com"
        assert len(domain["record_value"]) == 43
        assert (domain["state"], domain["join"], domain["join_role"]) == (
            "pending",
            "off",
            "member",
        )
        assert domain["checked_at"] is None

    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("co.uk", "public_suffix"),
            ("github.io", "public_suffix"),
            ("foo.kawasaki.jp", "public_suffix"),
            ("公司.cn", "public_suffix"),
            ("gmail.com", "free_mail_domain"),
            ("GoogleMail.com.", "free_mail_domain"),
            ("tutanota.com", "free_mail_domain"),
            ("localhost", "value_error"),
            ("com", "value_error"),
            ("192.0.2.1", "value_error"),
            ("[2001:db8::1]", "value_error"),
            ("2001:db8::1", "value_error"),
            ("*.example.com", "value_error"),
            ("_dmarc.example.com", "value_error"),
            ("https://example.com", "value_error"),
            ("ada@example.com", "value_error"),
            ("exa mple.com", "value_error"),
            ("xn--a.com", "value_error"),
            ("a\u200db.com", "value_error"),
            ("☃.com", "value_error"),
            ("", "value_error"),
            (".", "value_error"),
            ("example..com", "value_error"),
            ("a" * 64 + ".com", "value_error"),
            (".".join(["a" * 60] * 4) + ".com", "value_error"),
            ("a" * 254, "string_too_long"),
            ("ا" * 253, "value_error"),
            (7, "string_type"),
            (None, "string_type"),
        ],
    )
    def test_refuses_what_nobody_can_own(self, create, name, kind):
        answer = create(name)

        assert answer.status_code == 422
        (fault,) = answer.json["detail"]
        assert (fault["loc"], fault["type"]) == (["body", "name"], kind)

    def test_a_name_is_the_tenants_once_in_any_form(self, create):
        create("bücher.example.com")

        answer = create("XN--BCHER-KVA.example.com")

        assert (answer.status_code, answer.json["code"]) == (409, "domain_exists")

    def test_tells_nothing_about_another_tenant(self, create, verified):
        verified("example.com", of=create_tenant())

        assert create("example.com").status_code == 201

    def test_at_most_50(self, create, tenant):
        for _ in range(49):
            create_domain(tenant)

        assert create().status_code == 201
        answer = create("example.org")
        assert (answer.status_code, answer.json["code"]) == (409, "too_many_domains")

    def test_two_at_once_make_one(self, create):
        answers = at_once([create] * 5)

        assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409]


class TestRule:
    def test_joining_needs_the_permission_to_make_members(self, api, create, tenant):
        key = create_api_key(tenant, [Permission.DOMAINS_READ, Permission.DOMAINS_WRITE])
        domain_id = create(token=key).json["data"]["id"]

        made = create("example.org", token=key, join="suggest")
        changed = api.patch(f"{PATH}/{domain_id}", token=key, json={"join": "auto"})
        sso = api.patch(f"{PATH}/{domain_id}", token=key, json={"enforce_sso": True})

        assert [made.status_code, changed.status_code, sso.status_code] == [403, 403, 200]
        assert row(domain_id).join == "off"

    @pytest.mark.parametrize(
        ("who", "role", "status"),
        [
            ("admin", "member", 201),
            ("admin", "viewer", 201),
            ("admin", "billing", 403),
            ("admin", "admin", 403),
            ("owner", "admin", 201),
            ("owner", "owner", 201),
        ],
    )
    def test_only_an_owner_sets_a_role_above_member(self, create, tenant, who, role, status):
        token = create_member(tenant, role=who)[2]

        answer = create(token=token, join_role=role)

        assert answer.status_code == status
        assert status == 201 or answer.json["code"] == "join_role_above_member"

    def test_an_admin_does_not_widen_what_an_owner_set(self, api, create, owner, admin):
        domain_id = create(token=owner, join_role="admin").json["data"]["id"]

        def change(**body):
            return api.patch(f"{PATH}/{domain_id}", token=admin, json=body).status_code

        assert change(join="auto") == change(include_subdomains=True) == 403
        assert change(enforce_sso=True) == change(join_role="member", join="auto") == 200

    def test_a_superadmin_may_set_it(self, api, tenant):
        query = {"tenant_id": str(tenant.id)}
        body = {"name": "example.com", "join": "auto", "join_role": "admin"}

        answer = api.post(PATH, token=platform_token(), query_string=query, json=body)

        assert answer.status_code == 201


class TestVerification:
    def test_by_the_record(self, create, verify, check, set_record):
        domain = create().json["data"]
        set_record(domain)

        answer = verify(domain["id"])
        check()

        assert (answer.status_code, answer.json["data"]["state"]) == (202, "pending")
        found = row(domain["id"])
        assert (found.state, found.error, found.unconfirmed_since) == ("verified", None, None)
        assert found.verified_at is not None
        week = found.next_check_at - found.checked_at
        assert week == timedelta(weeks=1)
        assert actions(domain["id"])[-1] == ("domain.verified", "system:job")

    def test_a_worker_runs_it_soon(self, app, create, verify, set_record):
        from app.core.jobs.queues import Queue, connection, queue_named

        domain = create().json["data"]

        verify(domain["id"])

        with app.app_context():
            (job,) = queue_named(Queue.MAINTENANCE, connection()).get_jobs()
        assert job.func_name == "app.domains.jobs.check_domains"

    @pytest.mark.parametrize(
        ("reply", "error"),
        [
            (records(), "no_record"),
            (records('TXT "other"'), "other_value"),
            (failing(dns.rcode.SERVFAIL), "bad_answer"),
        ],
    )
    def test_a_check_that_fails_says_why(
        self, api, admin, create, verify, check, server, reply, error
    ):
        domain = create().json["data"]
        server.set(domain["record_name"], reply)

        verify(domain["id"])
        check()

        found = api.get(f"{PATH}/{domain['id']}", token=admin).json["data"]
        assert (found["state"], found["error"]) == ("pending", error)
        assert found["next_check_at"] is not None

    def test_fails_after_72_hours(self, create, check, server):
        domain = create().json["data"]
        since = utcnow() - timedelta(hours=72, seconds=1)
        database.execute(
            "UPDATE domains SET unconfirmed_since = :since, next_check_at = now()", since=since
        )

        check()

        found = row(domain["id"])
        assert (found.state, found.error, found.next_check_at) == ("failed", "no_record", None)
        assert actions(domain["id"])[-1] == ("domain.failed", "system:job")
        (event,) = database.rows(OutboxEvent, type="domain.failed")
        assert event.data["record_name"] == domain["record_name"]

    def test_is_tried_at_growing_intervals(self):
        now = utcnow()
        domain = Domain._make(None for _ in Domain.row_class._fields)
        domain = domain._replace(state="pending", unconfirmed_since=now)
        moment, waits = now, []
        while True:
            values = checks.after_check(domain, checks.CheckError.NO_RECORD, moment)
            if values["next_check_at"] is None:
                break
            waits.append((values["next_check_at"] - now) / timedelta(minutes=1))
            moment = values["next_check_at"] + timedelta(seconds=3)

        assert waits == [1, 5, 30, 120, 360, 720, 1440, 2880, 4320]
        assert values["state"] == "failed"

    def test_asking_all_the_time_looks_up_once(self, create, verify, check, server):
        domain = create().json["data"]
        for _ in range(3):
            assert verify(domain["id"]).status_code == 202
            check()

        assert len(server.asked) == 1

    def test_a_silent_server_holds_no_connection_and_no_other_domain(
        self, app, create, check, set_record, server, monkeypatch
    ):
        monkeypatch.setattr("app.domains.challenges.SECONDS", 1.0)
        for number in range(10):
            server.set(create(f"silent{number}.example.com").json["data"]["record_name"], silence)
        set_record(create().json["data"])
        database.execute("UPDATE domains SET next_check_at = now()")
        began = utcnow()

        check()

        assert utcnow() - began < timedelta(seconds=8)
        states = [domain.state for domain in database.rows(Domain)]
        assert sorted(states) == ["pending"] * 10 + ["verified"]

    def test_many_that_are_due_do_not_keep_the_worker_from_other_jobs(
        self, tenant, check, server, monkeypatch
    ):
        for number in range(20):
            create_domain(tenant, name=f"n{number}.example.com", next_check_at=utcnow())
        moments = SimpleNamespace(monotonic=iter(range(0, 1_000, 10)).__next__)
        monkeypatch.setattr("app.domains.jobs.time", moments)
        monkeypatch.setattr("app.domains.checks.TOGETHER", 1)

        check()
        after_a_minute = len(server.asked)
        for _ in range(5):
            check()

        assert after_a_minute < 10
        assert len(server.asked) == 20

    def test_two_jobs_share_the_domains(self, app, create, check, server):
        for number in range(8):
            create(f"n{number}.example.com")
        database.execute("UPDATE domains SET next_check_at = now()")

        at_once([check, check])

        assert sorted(server.asked) == sorted(
            f"_controlplane-challenge.n{n}.example.com" for n in range(8)
        )


class TestLapse:
    def weeks_later(self, check):
        database.execute(
            "UPDATE domains SET next_check_at = now(), checked_at = checked_at - interval '7 days',"
            " unconfirmed_since = unconfirmed_since - interval '7 days'"
        )
        check()

    def test_after_three_weekly_failures(self, verified, check, server, tenant):
        domain = verified(next_check_at=utcnow())
        create_member(tenant, email="ada@example.com")
        seen = []
        for _ in range(3):
            self.weeks_later(check)
            found = row(domain.id)
            seen.append((found.state, found.next_check_at is None))

        assert seen == [("verified", False), ("verified", False), ("lapsed", True)]
        assert [action for action, _ in actions(domain.id)] == ["domain.lapsed"]
        assert database.query("SELECT count(*) FROM memberships WHERE is_active")[0].count == 1

    def test_a_record_that_is_back_ends_the_count(self, verified, check, server, set_record):
        domain = verified(next_check_at=utcnow())
        for _ in range(2):
            self.weeks_later(check)
        set_record(domain)
        self.weeks_later(check)
        server.set(domain.record_name, records())
        self.weeks_later(check)

        found = row(domain.id)
        assert (found.state, found.verified_at) == ("verified", domain.verified_at)
        assert utcnow() - found.unconfirmed_since < timedelta(minutes=1)

    def test_asking_for_checks_makes_it_neither_sooner_nor_later(
        self, verified, check, server, verify
    ):
        domain = verified()
        for _ in range(5):
            database.execute("UPDATE domains SET checked_at = NULL")
            verify(domain.id)
            check()

        assert row(domain.id).state == "verified"


class TestOneTenant:
    @pytest.fixture
    def other(self):
        tenant = create_tenant()
        return tenant, create_member(tenant, "admin")[2]

    def test_of_two_that_are_verified_at_once_one_wins(
        self, app, create, verify, check, server, other, admin
    ):
        tokens = [admin, other[1], *(create_member(create_tenant(), "admin")[2] for _ in range(2))]
        domains = [create(token=token).json["data"] for token in tokens]
        values = [f'TXT "{domain["record_value"]}"' for domain in domains]
        server.set(domains[0]["record_name"], records(*values))
        database.execute("UPDATE domains SET next_check_at = now()")
        original = checks.TOGETHER
        checks.TOGETHER = 1  # so that each job takes one
        try:
            at_once([check] * 4)
        finally:
            checks.TOGETHER = original

        found = database.rows(Domain)
        assert sorted(domain.state for domain in found) == ["pending"] * 3 + ["verified"]
        assert {domain.error for domain in found if domain.state == "pending"} == {"domain_taken"}
        (loser, *_) = (
            (domain["id"], token)
            for domain, token in zip(domains, tokens, strict=True)
            if row(domain["id"]).state == "pending"
        )
        answer = verify(*loser)
        assert (answer.status_code, answer.json["code"]) == (409, "domain_taken")

    def test_without_the_record_nobody_learns_that_it_is_taken(
        self, create, verify, check, server, verified, other
    ):
        verified()
        domain = create(token=other[1]).json["data"]

        assert verify(domain["id"], other[1]).status_code == 202
        check()
        assert row(domain["id"]).error == "no_record"

    def test_a_second_claim_wins_only_after_the_ends_of_the_first(
        self, create, verify, check, set_record, server, verified, other
    ):
        first = verified(next_check_at=utcnow())
        second = create(token=other[1]).json["data"]
        set_record(second)  # the domain has another owner now
        states = []
        for weeks in (0, 1, 2, 2):
            database.execute(
                "UPDATE domains SET checked_at = NULL, next_check_at = now(),"
                " unconfirmed_since = now() - make_interval(weeks => :weeks) WHERE id = :id"
                " AND state = 'verified'",
                weeks=weeks,
                id=first.id,
            )
            database.execute("UPDATE domains SET checked_at = NULL WHERE id = :id", id=second["id"])
            verify(second["id"], other[1])
            check()
            states.append((row(first.id).state, row(second["id"]).state))

        assert states[0] == states[1] == ("verified", "pending")
        assert states[-1] == ("lapsed", "verified")

    def test_a_homograph_is_another_name(self, create, check, set_record, verified, other):
        verified("apple-example.com")
        homograph = create("аррle-example.com", token=other[1]).json["data"]  # Cyrillic а, р, р
        set_record(homograph)
        database.execute("UPDATE domains SET next_check_at = now()")

        check()

        assert homograph["name"].startswith("xn--")
        assert row(homograph["id"]).state == "verified"


class TestRows:
    def test_are_listed_by_state_and_name(self, api, admin, tenant, verified):
        verified()
        create_domain(tenant, name="example.org")

        def names(**query):
            return [
                one["name"] for one in api.get(PATH, token=admin, query_string=query).json["data"]
            ]

        assert names() == ["example.com", "example.org"]
        assert names(state="pending") == names(name="example.org") == ["example.org"]

    def test_deletion_keeps_members_and_drops_suggestions(self, api, admin, tenant, verified):
        from tests.factories import create_join_request

        domain = verified()
        for state in ("pending", "declined", "accepted"):
            create_join_request(tenant, state=state)
        create_join_request(tenant, domain="example.org")

        assert api.delete(f"{PATH}/{domain.id}", token=admin).status_code == 204

        left = database.query("SELECT domain, state FROM join_requests ORDER BY id")
        assert [tuple(one) for one in left] == [
            ("example.com", "declined"),
            ("example.com", "accepted"),
            ("example.org", "pending"),
        ]

    def test_a_domain_that_is_deleted_during_its_check_stays_deleted(self, check, server, tenant):
        domain = create_domain(tenant, name="example.com", next_check_at=utcnow())

        def reply(query):
            database.execute("DELETE FROM domains")
            return records(f'TXT "{domain.record_value}"')(query)

        server.set(domain.record_name, reply)
        check()

        assert database.rows(Domain) == []


class TestFreeMailDomains:
    def test_the_file_has_the_checksum_that_is_written_beside_it(self):
        table = (FREE_MAIL.parent / "README.md").read_text()
        digest = hashlib.sha256(gzip.decompress(FREE_MAIL.read_bytes())).hexdigest()

        assert f"| {digest} |" in table

    def test_neither_list_needs_a_network_or_a_folder(self, monkeypatch, tmp_path):
        import socket

        def refuse(*_, **__):
            raise AssertionError("it opens a socket")

        monkeypatch.setattr(socket, "socket", refuse)
        monkeypatch.setenv("HOME", str(tmp_path))
        domain_names._public_suffixes.cache_clear()

        assert domain_names.is_public_suffix("co.uk")
        assert list(tmp_path.iterdir()) == []
