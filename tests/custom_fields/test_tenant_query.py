"""GET /v1/tenants?meta_data.…=, which finds tenants by their own custom fields."""

import pytest
from sqlalchemy import select

from app.core.db.statements import Statement
from app.core.db.transactions import current_transaction
from app.custom_fields.search_index import tenant_query
from app.tenants.models import Tenant
from tests import database
from tests.custom_fields.fields import analyze, build_index, create_field
from tests.database import platform_transaction
from tests.factories import create_tenant, create_user, platform_token
from tests.messages import sent_messages

CREATE_CROWD = [
    """
INSERT INTO tenants (id, created_at, updated_at, version, idp_org_id, name, slug, plan_name,
    primary_contact_name, primary_contact_email, primary_contact_phone, mailing_address_line_1,
    mailing_address_line_2, mailing_city, mailing_state, mailing_zipcode, mailing_country,
    is_active, meta_data)
SELECT gen_random_uuid(), now(), now(), 1, 'crowd_' || n, '', 'crowd-' || n, 'free',
    '', '', '', '', '', '', '', '', '', true, json_build_object('text', 't' || n)
FROM generate_series(1, 2000) AS n
""",
    """
INSERT INTO custom_fields (id, created_at, updated_at, version, tenant_id, idp_org_id, entity_type,
    field_key, label, field_type, is_required, is_searchable, is_active, sort_order)
SELECT gen_random_uuid(), now(), now(), 1, t.id, t.idp_org_id, entity_type, field_type, '',
    field_type, false, true, true, 0
FROM tenants t, unnest('{text,decimal,date}'::text[]) AS field_type,
    unnest('{user,tenant}'::text[]) AS entity_type
""",
    """
INSERT INTO custom_field_indexes (tenant_id, field_id, state, is_settled, done, total, updated_at)
SELECT tenant_id, id, 'ready', true, 0, 0, now() FROM custom_fields
""",
    """
INSERT INTO custom_field_index_rows (tenant_id, field_id, entity_id, ordinal, text_key,
    number_value, date_value)
SELECT tenant_id, id, CASE entity_type WHEN 'tenant' THEN tenant_id ELSE gen_random_uuid() END,
    copy, CASE field_type WHEN 'text' THEN 't' || row_number() OVER () END,
    CASE field_type WHEN 'decimal' THEN row_number() OVER () END,
    CASE field_type WHEN 'date' THEN now() + row_number() OVER () * interval '1 day' END
FROM custom_fields, generate_series(0, 4) AS copy WHERE entity_type = 'user' OR copy = 0
""",
]


@pytest.fixture
def customer(app):
    """Create a tenant with fields, each ``key=type``, and metadata; its indexes are built."""

    def create(meta_data, **types):
        tenant = create_tenant(meta_data=meta_data)
        for key, field_type in types.items():
            field = create_field(
                tenant,
                entity_type="tenant",
                field_key=key,
                field_type=field_type,
                options=["basic", "pro"] if field_type == "select" else None,
                is_searchable=True,
            )
            build_index(app, field)
        return tenant

    return create


@pytest.fixture
def search(api):
    token = platform_token()

    def send(**filters):
        query = {f"meta_data.{name}": value for name, value in filters.items()}
        return api.get("/v1/tenants", token=token, query_string=query)

    return send


@pytest.fixture
def found(search):
    """The ids of the tenants that a query finds."""

    def find(**filters):
        answer = search(**filters)
        assert answer.status_code == 200, answer.get_json()
        return [tenant["id"] for tenant in answer.get_json()["data"]]

    return find


def ids(*tenants):
    return [str(tenant.id) for tenant in tenants]


class TestEquality:
    def test_finds_tenants_by_their_own_fields(self, customer, found):
        first = customer({"segment": "smb"}, segment="text")
        customer({"segment": "enterprise"}, segment="text")
        third = customer({"segment": "smb", "size": 5}, segment="text", size="integer")

        assert found(segment="smb") == ids(first, third)
        assert found(segment="smb", size="5") == ids(third)
        assert found(segment="nothing") == []

    def test_takes_both_spellings_and_other_filters(self, api, customer):
        first = customer({"segment": "smb"}, segment="text")
        customer({"segment": "smb"}, segment="text")
        path = f"/v1/tenants?meta_data[segment]=smb&slug={first.slug}"

        listed = api.get(path, token=platform_token()).get_json()["data"]

        assert [tenant["id"] for tenant in listed] == ids(first)
        assert "meta_data" not in listed[0]

    def test_ignores_users_other_keys_and_archived_fields(self, app, api, customer, found):
        tenant = customer({"segment": "smb"}, segment="text")
        create_user(tenant, meta_data={"segment": "vip", "other": "vip"})
        build_index(app, create_field(tenant, field_key="segment", is_searchable=True))
        customer({"other": "smb", "segment": "x"}, other="text", segment="text")
        gone = customer({"segment": "smb"}, segment="text")
        query = {"tenant_id": str(gone.id)}
        (field,) = api.get("/v1/custom-fields", token=platform_token(), query_string=query).json[
            "data"
        ]
        api.post(f"/v1/custom-fields/{field['id']}/archive", token=platform_token())

        assert found(segment="smb") == ids(tenant)
        assert found(segment="vip") == []

    def test_follows_every_patch(self, api, customer, found):
        tenant = customer({}, segment="text")
        path = f"/v1/tenants/{tenant.id}/meta_data"

        for value, expected in (
            ("smb", ids(tenant)),
            ("other", []),
            ("smb", ids(tenant)),
            (None, []),
        ):
            patched = api.patch(path, token=platform_token(), json={"patches": {"segment": value}})
            assert patched.status_code == 200
            assert found(segment="smb") == expected


class TestTypes:
    def test_compares_a_value_as_each_type_that_it_fits(self, customer, found):
        text = customer({"tier": "1"}, tier="text")
        number = customer({"tier": 1.0}, tier="decimal")
        boolean = customer({"tier": True}, tier="boolean")
        select_ = customer({"tier": "pro"}, tier="select")

        assert found(tier="1") == ids(text, number, boolean)
        assert found(tier="true") == ids(boolean)
        assert found(tier="1.00") == ids(number)
        assert found(tier="pro") == ids(select_)

    def test_ranges_and_prefixes_are_of_the_types_that_have_them(self, customer, found):
        text = customer({"key": "2024-05-01x"}, key="text")
        day = customer({"key": "2024-05-01"}, key="date")
        number = customer({"key": 7}, key="integer")

        assert found(key__prefix="2024") == ids(text)
        assert found(key__gte="2024-01-01", key__lte="2024-12-31") == ids(day)
        assert found(key__gte="5", key__lte="9") == ids(number)

    def test_refuses_a_value_that_fits_none(self, customer, search):
        customer({"n": 1}, n="integer")
        customer({"n": "2024-05-01"}, n="date")

        wrong, operator = search(n="x"), search(n__prefix="1")
        ends = search(n__gte="5", n__lte="2024-05-01")

        assert wrong.json["detail"][0]["type"] == "date_from_datetime_parsing"
        assert wrong.json["detail"][0]["loc"] == ["query", "meta_data.n"]
        assert "date and integer have no prefix" in operator.json["detail"][0]["msg"]
        assert ends.json["detail"][0]["loc"] == ["query", "meta_data.n__lte"]
        assert {wrong.status_code, operator.status_code, ends.status_code} == {422}


class TestRefusals:
    def test_a_key_that_no_tenant_has(self, customer, search):
        customer({"known": "x"}, known="text")

        for key in ("nothing", "known__gte", "nothing__gte", ""):
            answer = search(**{key: "x"})
            assert answer.status_code == 422
            assert answer.json["detail"][0]["loc"] == ["query", f"meta_data.{key}"]

    def test_more_filters_than_any_tenant_can_satisfy(self, search):
        answer = search(**{f"key{number}": "x" for number in range(41)})

        (fault,) = answer.json["detail"]
        assert (answer.status_code, fault["loc"]) == (422, ["query", "meta_data.key40"])

    @pytest.mark.parametrize("state", ["building", "failed"])
    def test_an_index_that_is_not_ready(self, customer, search, found, state):
        customer({"key": "x", "other": "x"}, key="text", other="text")
        tenant = create_tenant()
        field = create_field(tenant, entity_type="tenant", field_key="key", is_searchable=True)
        database.execute(
            "UPDATE custom_field_indexes SET state = :state WHERE field_id = :id",
            state=state,
            id=field.id,
        )

        answer = search(key="x")

        assert (answer.status_code, answer.json["code"]) == (409, "index_not_ready")
        assert str(field.id) in answer.json["detail"]
        assert len(found(other="x")) == 1


class TestStatements:
    def test_one_statement_reads_the_types_of_all_keys(self, customer, search):
        customer({"a": "x", "b": 1}, a="text", b="integer")

        with sent_messages() as messages:
            search(a="x", b__gte="1")

        assert messages == [
            "auth.authenticate_user",
            "custom_fields.find_types_of_tenants",
            "tenants.list",
            "COMMIT",
        ]

    SEARCHES = (
        ({"text": "t7"}, {"text_key"}),
        ({"text__prefix": "t7"}, {"text_key"}),
        ({"decimal": "1"}, {"number_value"}),
        ({"decimal__gte": "11", "decimal__lte": "12"}, {"number_value"}),
        ({"date__gte": "2999-01-01"}, {"date_value"}),
        ({"text": "t7", "decimal__gte": "99999999"}, {"text_key", "number_value"}),
    )

    def test_every_search_scans_the_tenants_index_by_the_value(self, app):
        for statement in CREATE_CROWD:
            database.execute(statement)
        analyze(app)

        for query, columns in self.SEARCHES:
            with platform_transaction():
                found = tenant_query.among({f"meta_data.{name}": query[name] for name in query})
                statement = Statement("search", select(Tenant.id).where(found.clause))
                searching = explain(statement, **found.values)
                finding = explain(tenant_query.FIND_TYPES, keys=["text", "decimal", "nothing"])

            assert {name for name in searching if "rows_tenants_" in name} == {
                f"ix_custom_field_index_rows_tenants_{column}" for column in columns
            }
            known = {"ix_custom_fields_searched_tenants", "ix_custom_field_indexes_unready"}
            assert known <= finding
            assert "Seq Scan" not in searching | finding


def explain(statement, **values):
    """The names of the indexes in a statement's plan, and its types of nodes."""
    text = f"EXPLAIN (FORMAT JSON) {statement.text}"
    result = current_transaction().execute(text, {**statement.constants, **values})
    return set(names(result.fetchone()[0][0]["Plan"]))


def names(node):
    yield node["Node Type"]
    if "Index Name" in node:
        yield node["Index Name"]
    for inner in node.get("Plans", ()):
        yield from names(inner)
