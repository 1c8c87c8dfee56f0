"""GET /v1/users?meta_data.<key>=… ."""

import pytest
from sqlalchemy import select

from app.core.db import tenancy
from app.core.db.statements import Statement
from app.core.db.transactions import current_transaction, transaction
from app.custom_fields.search_index import query as search
from app.custom_fields.search_index.conditions import after_all_with
from app.users.models import User
from tests.custom_fields.fields import analyze, build_index, create_field, create_users
from tests.factories import create_member, create_tenant, create_user, platform_token


@pytest.fixture
def token(tenant):
    return create_member(tenant)[2]


@pytest.fixture
def people(app, tenant):
    """Create users named by their metadata's ``name``, and searchable fields; index them."""

    def create(fields, *documents):
        for number, document in enumerate(documents):
            create_user(tenant, first_name=str(number), meta_data=document)
        for key, field_type in fields.items():
            options = ["a", "b", "c"] if "select" in field_type else None
            field = create_field(
                tenant, field_key=key, field_type=field_type, options=options, is_searchable=True
            )
            build_index(app, field)

    return create


@pytest.fixture
def found(api, token):
    """The numbers of the users that a query finds, in the order of the answer."""

    def find(**filters):
        query = {f"meta_data.{name}": value for name, value in filters.items()}
        answer = api.get("/v1/users", token=token, query_string=query)
        assert answer.status_code == 200, answer.get_json()
        return [int(user["first_name"]) for user in answer.get_json()["data"]]

    return find


@pytest.fixture
def fault(api, token):
    """Where and what a query's first fault is."""

    def find(**filters):
        query = {f"meta_data.{name}": value for name, value in filters.items()}
        answer = api.get("/v1/users", token=token, query_string=query)
        assert answer.status_code == 422, answer.get_json()
        first = answer.get_json()["detail"][0]
        return first["type"], first["loc"], first["input"]

    return find


class TestEquality:
    def test_finds_texts_exactly(self, people, found):
        people({"key": "text"}, {"key": "Ada"}, {"key": "ada"}, {"key": "Ada "}, {"key": ""}, {})

        assert found(key="Ada") == [0]
        assert found(key="ada") == [1]
        assert found(key="") == [3]

    def test_tells_long_texts_apart_beyond_what_is_indexed(self, people, found):
        long = "x" * 255
        people({"key": "long_text"}, {"key": long}, {"key": long + "a"}, {"key": long + "b" * 9000})

        assert found(key=long) == [0]
        assert found(key=long + "a") == [1]
        assert found(key=long + "b" * 9000) == [2]

    def test_finds_numbers_by_their_value_however_they_are_written(self, people, found):
        people(
            {"n": "integer", "d": "decimal"},
            {"n": 5, "d": 1.5},
            {"n": 5.0, "d": "1.50"},
            {"n": -5, "d": "1.5000000000000000000001"},
            {"n": 2**53 + 1, "d": 0.1},
            {"n": 2**53, "d": "0.1"},
        )

        assert found(n="5") == [0, 1]
        assert found(n=str(2**53 + 1)) == [3]
        assert found(d="1.5") == [0, 1]
        assert found(d="1.5000000000000000000001") == [2]
        assert found(d="0.10") == [3, 4]

    def test_finds_booleans_dates_and_moments(self, people, found):
        people(
            {"b": "boolean", "day": "date", "at": "datetime"},
            {"b": True, "day": "2024-05-01", "at": "2024-05-01T12:00:00+02:00"},
            {"b": False, "day": "2024-05-02", "at": "2024-05-01T10:00:00Z"},
        )

        assert found(b="true") == found(b="1") == [0]
        assert found(day="2024-05-02") == [1]
        assert found(at="2024-05-01T11:00:00+01:00") == [0, 1]

    def test_finds_a_user_by_each_chosen_option(self, people, found):
        people(
            {"one": "select", "many": "multi_select"},
            {"one": "a", "many": ["a", "b"]},
            {"one": "b", "many": ["b"]},
            {"many": []},
        )

        assert found(one="a") == [0]
        assert found(many="b") == [0, 1]
        assert found(many="c") == []

    def test_narrows_by_several_fields_and_by_columns_at_once(self, api, token, people, found):
        people(
            {"a": "text", "b": "integer"},
            {"a": "x", "b": 1},
            {"a": "x", "b": 2},
            {"a": "y", "b": 2},
        )

        assert found(a="x", b="2") == [1]
        query = {"meta_data.a": "x", "is_active": "false"}
        assert api.get("/v1/users", token=token, query_string=query).get_json()["data"] == []

    def test_values_that_are_not_of_the_type_are_not_found(self, people, found):
        people({"n": "integer"}, {"n": "5"}, {"n": True}, {"n": 5.5}, {"n": None}, {"n": 5})

        assert found(n="5") == [4]
        assert found(n__gte="-9") == [4]


class TestRange:
    def test_takes_both_ends_in(self, people, found):
        people({"n": "integer"}, *({"n": n} for n in (1, 2, 3, 4)))

        assert found(n__gte="2", n__lte="3") == [1, 2]
        assert found(n__gte="3") == [2, 3]
        assert found(n__lte="1") == [0]
        assert found(n__gte="3", n__lte="2") == []

    def test_is_exact_where_floats_are_not(self, people, found):
        people(
            {"d": "decimal"},
            *({"d": d} for d in ("0.1", "0.10000000000000000001", "0.09999999999999999999")),
        )

        assert found(d__gte="0.1") == [0, 1]
        assert found(d__lte="0.1") == [0, 2]
        assert found(d__gte="0.10000000000000000001") == [1]
        assert found(d__lte="0.09999999999999999999") == [2]

    def test_compares_dates_and_moments(self, people, found):
        people(
            {"day": "date", "at": "datetime"},
            {"day": "0001-01-01", "at": "2024-05-01T00:00:00+02:00"},
            {"day": "2024-05-01", "at": "2024-05-01T00:00:00Z"},
            {"day": "9999-12-31", "at": "2024-05-01T00:00:00-02:00"},
        )

        assert found(day__gte="2024-05-01") == [1, 2]
        assert found(day__lte="2024-05-01") == [0, 1]
        assert found(at__gte="2024-05-01T00:00:00Z") == [1, 2]


class TestPrefix:
    def test_finds_what_begins_so(self, people, found):
        people(
            {"key": "text"},
            *({"key": key} for key in ("ab", "abc", "abd", "a", "b", "Abc", "ab\U0010ffffx")),
        )

        assert found(key__prefix="ab") == [0, 1, 2, 6]
        assert found(key__prefix="abc") == [1]
        assert found(key__prefix="ab\U0010ffff") == [6]
        assert found(key__prefix="") == [0, 1, 2, 3, 4, 5, 6]

    def test_knows_no_wildcards(self, people, found):
        people({"key": "text"}, {"key": "a%b"}, {"key": "axb"}, {"key": "a_b"})

        assert found(key__prefix="a%") == [0]
        assert found(key__prefix="a_") == [2]

    def test_may_be_longer_than_what_is_indexed(self, people, found):
        long = "é" * 255
        people({"key": "text"}, {"key": long}, {"key": long + "ab"}, {"key": long + "b"})

        assert found(key__prefix=long) == [0, 1, 2]
        assert found(key__prefix=long + "a") == [1]

    @pytest.mark.parametrize(
        ("prefix", "after"),
        [
            ("a", "b"),
            ("az", "a{"),
            ("\ud7ff", "\ue000"),
            ("a\U0010ffff", "b"),
            ("\U0010ffff", None),
            ("", None),
        ],
    )
    def test_ends_before_the_next_text(self, prefix, after):
        assert after_all_with(prefix) == after


class TestPages:
    def test_walks_through_what_is_found(self, api, token, people):
        people({"key": "text"}, *({"key": "ab"[n % 2]} for n in range(9)))
        query = {"meta_data.key": "a", "limit": 2}
        numbers, pages = [], 0

        while pages == 0 or query["cursor"]:
            page = api.get("/v1/users", token=token, query_string=query).get_json()
            numbers += [int(user["first_name"]) for user in page["data"]]
            query["cursor"], pages = page["next_cursor"], pages + 1

        assert numbers == [0, 2, 4, 6, 8]
        assert pages == 3


class TestRefusals:
    def test_unknown_unsearchable_and_archived_fields(self, api, tenant, token, people, fault):
        people({"gone": "text"})
        field = create_field(tenant, field_key="plain")
        create_field(create_tenant(), field_key="elsewhere", is_searchable=True)
        create_field(tenant, field_key="order", entity_type="order", is_searchable=True)
        listed = api.get("/v1/custom-fields", token=token).get_json()["data"]
        api.post(f"/v1/custom-fields/{listed[0]['id']}/archive", token=token)

        for key in ("nothing", "plain", "elsewhere", "order", "gone", "plain__gte", "", "__gte"):
            assert fault(**{key: "x"}) == ("value_error", ["query", f"meta_data.{key}"], "x")
        assert field.is_searchable is False

    @pytest.mark.parametrize(
        ("field_type", "operator"),
        [
            ("text", "gte"),
            ("email", "lte"),
            ("select", "gte"),
            ("boolean", "gte"),
            ("boolean", "prefix"),
            ("integer", "prefix"),
            ("date", "prefix"),
        ],
    )
    def test_operators_that_a_type_does_not_have(self, people, fault, field_type, operator):
        people({"key": field_type})

        found = fault(**{f"key__{operator}": "1"})

        assert found[:2] == ("value_error", ["query", f"meta_data.key__{operator}"])

    @pytest.mark.parametrize(
        ("field_type", "value", "refused"),
        [
            ("integer", "x", "int_parsing"),
            ("integer", "5.5", "int_parsing"),
            ("integer", str(2**63), "int_parsing_size"),
            ("integer", "9" * 400, "int_parsing_size"),
            ("decimal", "x", "decimal_parsing"),
            ("boolean", "x", "bool_parsing"),
            ("date", "2024", "date_from_datetime_parsing"),
            ("datetime", "2024-05-01T10:00:00", "timezone_aware"),
        ],
    )
    def test_values_of_another_type(self, people, fault, field_type, value, refused):
        people({"key": field_type})

        assert fault(key=value) == (refused, ["query", "meta_data.key"], value)

    def test_a_second_range_or_prefix(self, people, fault):
        people({"n": "integer", "m": "integer", "t": "text"})

        for filters in (
            {"n__gte": "1", "m__lte": "1"},
            {"n__gte": "1", "t__prefix": "a"},
            {"t__prefix": "a", "n__lte": "1"},
        ):
            last = list(filters)[-1]
            assert fault(**filters)[:2] == ("value_error", ["query", f"meta_data.{last}"])

    def test_a_platform_credential_must_name_the_tenant(self, api, tenant, people):
        people({"key": "text"}, {"key": "a"})
        query = {"meta_data.key": "a"}

        nowhere = api.get("/v1/users", token=platform_token(), query_string=query)
        query["tenant_id"] = str(tenant.id)
        named = api.get("/v1/users", token=platform_token(), query_string=query)

        assert nowhere.get_json()["detail"][0]["loc"] == ["query", "tenant_id"]
        assert len(named.get_json()["data"]) == 1

    def test_an_index_that_is_not_ready(self, api, tenant, token):
        field = create_field(tenant, field_key="key", is_searchable=True)

        answer = api.get("/v1/users?meta_data.key=a", token=token)

        assert answer.status_code == 409
        assert answer.get_json()["code"] == "index_not_ready"
        assert str(field.id) in answer.get_json()["detail"]

    def test_a_key_that_ends_like_an_operator_is_itself(self, people, found):
        people({"n": "integer", "n__gte": "text"}, {"n": 1, "n__gte": "x"}, {"n": 5})

        assert found(n__gte="x") == [0]


class TestPlans:
    """As the plain role, under row-level security."""

    SEARCHES = (
        ({"note": "n7"}, {"text_key"}),
        ({"note__prefix": "n7"}, {"text_key"}),
        ({"amount": "1"}, {"number_value"}),
        ({"amount__gte": "11", "amount__lte": "12"}, {"number_value"}),
        ({"day": "2024-01-01"}, {"date_value"}),
        ({"day__gte": "2024-01-01"}, {"date_value"}),
        ({"note": "n7", "amount__gte": "1499"}, {"text_key", "number_value"}),
    )

    @pytest.fixture
    def crowd(self, app, tenant):
        """Many users in two tenants, and statistics about them."""
        for owner in (tenant, create_tenant()):
            create_users(owner, 1500)
            for key, field_type in (("note", "text"), ("amount", "decimal"), ("day", "date")):
                field = create_field(
                    owner, field_key=key, field_type=field_type, is_searchable=True
                )
                build_index(app, field)
        analyze(app)

    @pytest.mark.usefixtures("crowd")
    def test_every_search_scans_the_index_by_the_value(self, app, tenant):
        for query, columns in self.SEARCHES:
            scans = self.scans_of(app, tenant, query)

            wanted = {f"ix_custom_field_index_rows_{column}": column for column in columns}
            of_rows = {name for name in scans if "custom_field_index_rows" in name}
            assert of_rows == wanted.keys(), query
            assert all(f"({column} " in scans[name] for name, column in wanted.items()), query

    def scans_of(self, app, tenant, query):
        """The condition of each index scan of a search, by the index."""
        with app.app_context(), transaction():
            tenancy.enter(tenancy.Scope(tenant.id))
            query = {f"meta_data.{name}": value for name, value in query.items()}
            found = search.among(tenant.id, "user", query, User.id)
            statement = Statement("search", select(User.id).where(found.clause))
            values = {**statement.constants, **found.values}
            explained = current_transaction().execute(
                f"EXPLAIN (FORMAT JSON) {statement.text}", values
            )
            return dict(index_scans(explained.fetchone()[0][0]["Plan"]))


def index_scans(node):
    """The name and the condition of each index scan in a plan."""
    if "Index Name" in node:
        yield node["Index Name"], node["Index Cond"]
    for inner in node.get("Plans", ()):
        yield from index_scans(inner)
