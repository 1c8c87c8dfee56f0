"""GET /v1/search."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from app.auth.permissions import Permission
from app.core.db.tenancy import PLATFORM_TENANT_ID
from app.emails.events import EmailEvent, EmailKind
from app.emails.service import record
from app.search import candidates
from tests.database import platform_transaction
from tests.factories import create_api_key, create_member, platform_token
from tests.messages import sent_messages
from tests.search.finding import create_subscription, create_tenant, create_user


@pytest.fixture
def acme(app):
    return create_tenant(name="Acme Rockets", slug="acme-inc", idp_org_id="org_ACME1")


@pytest.fixture
def find(api):
    """Search as the platform, or with ``token``; the results."""

    def search(q, token=None, **query):
        answer = api.get(
            "/v1/search", token=token or platform_token(), query_string={"q": q, **query}
        )
        assert answer.status_code == 200, answer.text
        assert list(answer.get_json()) == ["data"]
        return answer.get_json()["data"]

    return search


@pytest.fixture
def few_candidates(monkeypatch):
    """At most four rows are compared."""
    monkeypatch.setattr(candidates, "CANDIDATES", 4)
    candidates._statement.cache_clear()
    yield
    candidates._statement.cache_clear()


def send_mail(recipient, message_id):
    event = EmailEvent(
        kind=EmailKind.DELIVERED,
        message_id=message_id,
        recipient=recipient,
        occurred_at=datetime(2026, 1, 5, tzinfo=UTC),
    )
    with platform_transaction():
        record([event], source="resend", webhook_event_id=uuid4())


def titles(found):
    return [one["title"] for one in found]


class TestResult:
    def test_of_a_user_has_exactly_these_fields(self, acme, find):
        user = create_user(acme, first_name="Ada", last_name="Lovelace", email="ada@example.com")

        assert find("lovel") == [
            {
                "type": "user",
                "id": str(user.id),
                "tenant": {"id": str(acme.id), "slug": "acme-inc", "name": "Acme Rockets"},
                "title": "Ada Lovelace",
                "subtitle": "ada@example.com",
                "matched": "name",
            }
        ]

    def test_of_a_tenant_names_itself(self, acme, find):
        (found,) = find("rockets")

        assert (found["type"], found["title"], found["subtitle"], found["matched"]) == (
            "tenant", "Acme Rockets", "acme-inc", "name",
        )  # fmt: skip
        assert found["tenant"] == {"id": str(acme.id), "slug": "acme-inc", "name": "Acme Rockets"}

    def test_of_a_subscription_shows_its_plan_and_state(self, acme, find):
        create_subscription(acme, bp_subscription_id="sub_XY9", plan_name="pro")

        (found,) = find("sub_xy")

        assert (found["title"], found["subtitle"]) == ("sub_XY9", "pro, active")
        assert found["matched"] == "bp_subscription_id"

    def test_of_an_email_message_has_no_tenant(self, acme, find):
        send_mail("Grace@Example.com", "<m1@mail.example.com>")

        (found,) = find("grace")

        assert (found["type"], found["tenant"]) == ("email_message", None)
        assert (found["title"], found["subtitle"]) == ("grace@example.com", "delivered, resend")
        assert found["matched"] == "recipient"


class TestMatching:
    @pytest.fixture
    def jorg(self, acme):
        return create_user(
            acme,
            first_name="Jörg",
            last_name="Weiß-Müller",
            email="j.weiss@Sales.Example.com",
            idp_user_id="auth0|65F3a",
        )

    @pytest.mark.parametrize(
        ("q", "matched"),
        [
            ("jorg", "name"),
            ("JÖRG", "name"),
            ("weiß", "name"),
            ("mull", "name"),
            ("jörg weiß-mü", "name"),
            ("müller jörg", "name"),
            ("j.weiss@sales.example.com", "email"),
            ("j.weiss@sa", "email"),
            ("sales.ex", "email"),
            ("auth0|65f3", "idp_user_id"),
            ("auth0|65F3a", "idp_user_id"),
            ("sales jorg", "email"),
            ("jo mu", "name"),
            ("jörg JORG", "name"),
        ],
    )
    def test_finds_the_beginnings_of_words(self, jorg, find, q, matched):
        (found,) = find(q)

        assert (found["id"], found["matched"]) == (str(jorg.id), matched)

    @pytest.mark.parametrize(
        "q", ["ockets", "65f3a", "eiss", "jorg nobody", "jorg weissberg", "%%aa"]
    )
    def test_does_not_find_the_middle_of_words_or_ids(self, jorg, find, q):
        assert find(q) == []

    def test_finds_each_row_by_its_own_id(self, acme, jorg, find):
        subscription = create_subscription(acme)

        for row in (acme, jorg, subscription):
            (found,) = find(str(row.id))
            assert (found["id"], found["matched"]) == (str(row.id), "id")
            assert str(row.id) in {one["id"] for one in find(str(row.id)[:13])}

    def test_finds_by_the_other_ids_and_addresses(self, find):
        tenant = create_tenant(idp_org_id="org_Q1", primary_contact_email="boss@q.example")
        subscription = create_subscription(
            tenant, bp_customer_id="cus_Q2", bp_plan_id="price_Q3", billing_email="pay@q.example"
        )

        for q, row, field in (
            ("org_q1", tenant, "idp_org_id"),
            ("boss@q", tenant, "primary_contact_email"),
            ("cus_q2", subscription, "bp_customer_id"),
            ("price_q3", subscription, "bp_plan_id"),
            ("pay@q", subscription, "billing_email"),
        ):
            (found,) = find(q)
            assert (found["id"], found["matched"]) == (str(row.id), field)

    def test_finds_words_far_apart_although_one_of_them_is_frequent(
        self, acme, find, few_candidates
    ):
        for number in range(8):
            create_user(acme, first_name="Maria", last_name=f"Abc{number}", email=f"{number}@x.y")
        wanted = create_user(acme, first_name="Maria", last_name="Zuse", email="rare@word.example")

        found = find("maria rare")

        assert [one["id"] for one in found] == [str(wanted.id)]


class TestOrder:
    def test_equal_comes_before_whole_words_and_these_before_beginnings(self, acme, find):
        for name in ("Annabel", "Anna Bell", "Anna"):
            create_user(acme, first_name=name)

        assert titles(find("anna")) == ["Anna", "Anna Bell", "Annabel"]

    def test_active_rows_come_before_ended_ones(self, app, find):
        create_tenant(name="Alpha One", is_active=False)
        tenant = create_tenant(name="Alpha Two")
        create_user(tenant, first_name="Alpha", last_name="Aaa", is_active=False)
        create_subscription(tenant, bp_customer_id="alpha 1", bp_status="canceled")

        ended = titles(find("alpha"))[1:]

        assert titles(find("alpha"))[0] == "Alpha Two"
        assert sorted(ended)[:2] == ["Alpha Aaa", "Alpha One"]
        assert len(ended) == 3

    def test_equals_come_in_the_order_of_titles_then_the_newest_first(self, acme, find):
        later, earlier = (create_user(acme, first_name="Same", last_name=n) for n in ("Bb", "Aa"))
        twin = create_user(acme, first_name="Same", last_name="Bb")

        found = [one["id"] for one in find("same")]

        assert found == [str(row.id) for row in (earlier, twin, later)]

    def test_each_type_has_a_share_where_one_has_very_many(self, acme, find, few_candidates):
        for _ in range(6):
            create_user(acme, first_name="Zeta")
        create_tenant(name="Zeta Works")

        found = find("zeta")

        assert sorted(one["type"] for one in found) == ["tenant", "user", "user", "user"]


class TestLimits:
    def test_shows_twenty_unless_asked_and_fifty_at_most(self, acme, find, api):
        for number in range(55):
            create_user(acme, first_name="Many", last_name=f"N{number:02}")

        assert len(find("many")) == 20
        assert len(find("many", limit="50")) == 50
        answer = api.get("/v1/search?q=many&limit=51", token=platform_token())
        assert answer.status_code == 422

    @pytest.mark.parametrize(
        ("q", "type_"),
        [
            ("", "string_too_short"),
            ("é", "string_too_short"),
            ("a!", "value_error"),
            ("...", "value_error"),
            ("e\u0301", "value_error"),
        ],
    )
    def test_a_query_that_is_too_short_is_422(self, api, app, q, type_):
        answer = api.get("/v1/search", token=platform_token(), query_string={"q": q})

        (entry,) = answer.get_json()["detail"]
        assert answer.status_code == 422
        assert (entry["type"], entry["loc"]) == (type_, ["query", "q"])

    def test_is_one_statement_after_authentication(self, acme, find):
        platform_token()

        with sent_messages() as messages:
            find("acme rock", token=create_api_key(None, [Permission.TENANTS_READ]))

        assert messages[-3:] == ["auth.authenticate_key", "search_terms.find_rows", "COMMIT"]

    def test_long_texts_are_found_by_their_beginning(self, acme, find):
        create_user(acme, first_name="Longname" * 200, idp_user_id="id" * 5000)

        assert len(find("longname" * 20)[0]["title"]) <= 2 * 255
        assert find("idid" * 50)[0]["matched"] == "idp_user_id"


class TestVisibility:
    @pytest.fixture
    def others(self, acme):
        """The same names in another tenant, and a message to the same address."""
        other = create_tenant(name="Acme Other")
        create_user(other, first_name="Acme")
        create_subscription(other, bp_customer_id="acme_9")
        send_mail("acme@example.com", "m1")
        return other

    def test_a_tenants_credential_finds_its_own_tenants_rows_only(self, acme, others, find):
        user = create_user(acme, first_name="Acme")
        _, _, token = create_member(acme, role="owner")

        found = find("acme", token=token)

        assert {one["id"] for one in found} == {str(acme.id), str(user.id)}
        assert find("acme", token=token, tenant_id=str(others.id)) == []
        assert find("acme", token=token, tenant_id=str(PLATFORM_TENANT_ID)) == []

    def test_the_platform_finds_everything_and_narrows(self, acme, others, find):
        assert len(find("acme")) == 5
        narrowed = find("acme", tenant_id=str(others.id))
        assert {one["type"] for one in narrowed} == {"tenant", "user", "subscription"}

    def test_types_that_the_credential_may_not_read_are_left_out(self, acme, others, find):
        for further, types in (
            ([], {"tenant"}),
            (["users:read"], {"tenant", "user"}),
            (["billing:read"], {"tenant", "subscription"}),
            (["webhooks:read"], {"tenant", "email_message"}),
        ):
            key = create_api_key(None, ["tenants:read", *further])
            assert {one["type"] for one in find("acme", token=key)} == types
        assert find("acme", token=key, types="user") == []

    @pytest.mark.parametrize("role", ["viewer", "billing"])
    def test_a_role_finds_what_it_may_read(self, acme, find, role):
        create_subscription(acme, bp_customer_id="acme_1")
        _, _, token = create_member(acme, role=role)

        types = {one["type"] for one in find("acme", token=token)}

        assert types == {"tenant"} | ({"subscription"} if role == "billing" else set())
