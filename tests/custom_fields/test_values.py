"""Values held to the rules of custom fields, in a user's metadata and for other services."""

import pytest

from app.core.validation.messages import MAX_ANSWER
from tests.custom_fields.examples import BAD, GOOD, options_of
from tests.custom_fields.fields import create_field
from tests.factories import create_member, create_tenant, create_user, platform_token


@pytest.fixture
def token(tenant):
    return create_member(tenant)[2]


@pytest.fixture
def patch(api, tenant, token):
    """Patch a user that has the given metadata; the answer."""

    def send(patches, **meta_data):
        user = create_user(tenant, meta_data=meta_data)
        path = f"/v1/users/{user.id}/meta_data"
        return api.patch(path, token=token, json={"patches": patches})

    return send


class TestTypesInAPatch:
    @pytest.mark.parametrize("field_type", GOOD)
    def test_takes_and_keeps_what_fits(self, patch, tenant, field_type):
        create_field(tenant, field_key="key", field_type=field_type, options=options_of(field_type))
        values = GOOD[field_type]

        answers = [patch({"key": value}) for value in values]

        kept = [answer.get_json()["data"]["meta_data"]["key"] for answer in answers]
        assert list(map(repr, kept)) == list(map(repr, values))

    @pytest.mark.parametrize("field_type", BAD)
    def test_refuses_what_does_not_fit(self, patch, tenant, field_type):
        create_field(tenant, field_key="key", field_type=field_type, options=options_of(field_type))
        cases = BAD[field_type]

        answers = [patch({"key": value}) for value, _ in cases]

        faults = [answer.get_json()["detail"][0] for answer in answers]
        assert {answer.status_code for answer in answers} == {422}
        assert [fault["type"] for fault in faults] == [type_ for _, type_ in cases]
        assert {tuple(fault["loc"]) for fault in faults} == {("body", "patches", "key")}
        assert [fault["input"] for fault in faults] == [value for value, _ in cases]

    def test_names_each_wrong_item_of_a_list(self, patch, tenant):
        create_field(tenant, field_key="key", field_type="multi_select", options=["a"])

        faults = patch({"key": ["a", "x", 5]}).get_json()["detail"]

        assert [fault["loc"][2:] for fault in faults] == [["key", 1], ["key", 2]]

    def test_names_the_first_of_many_options(self, patch, tenant):
        options = [str(n) for n in range(60)]
        create_field(tenant, field_key="key", field_type="select", options=options)

        (fault,) = patch({"key": "c"}).get_json()["detail"]

        first = ", ".join(f"'{n}'" for n in range(50))
        assert fault["ctx"] == {"expected": f"{first} or 10 others"}

    def test_answers_a_long_list_of_wrong_options_in_a_limited_size(self, patch, tenant):
        options = [f"{n:0100}" for n in range(256)]
        create_field(tenant, field_key="key", field_type="multi_select", options=options)

        answer = patch({"key": [options[0], *["x", ["x"]] * 2000]})

        faults = answer.get_json()["detail"]
        assert len(answer.data) <= MAX_ANSWER
        assert [fault["loc"][3] for fault in faults] == list(range(1, len(faults) + 1))
        assert len(faults) > 100

    def test_refuses_a_long_email_address_at_once(self, patch, tenant):
        create_field(tenant, field_key="key", field_type="email")

        (fault,) = patch({"key": "\u0300" * 2000 + "@example.com"}).get_json()["detail"]

        assert fault["msg"] == (
            "value is not a valid email address: Length must not exceed 320 characters"
        )

    @pytest.mark.parametrize("options", [None, []])
    def test_a_select_without_options_takes_nothing(self, patch, tenant, options):
        create_field(tenant, field_key="key", field_type="select", options=options)

        assert patch({"key": "a"}).status_code == 422


class TestPatches:
    def test_lists_the_faults_in_the_fields_order_and_changes_nothing(self, api, patch, tenant):
        create_field(tenant, field_key="late", field_type="integer", sort_order=2)
        create_field(tenant, field_key="early", field_type="integer", sort_order=1)

        answer = patch({"late": "x", "free": 1, "early": "x"})

        keys = [fault["loc"][2] for fault in answer.get_json()["detail"]]
        assert keys == ["early", "late"]

    def test_null_removes_an_optional_value(self, patch, tenant):
        create_field(tenant, field_key="key", field_type="integer")

        answer = patch({"key": None}, key=5, other=1)

        assert answer.get_json()["data"]["meta_data"] == {"other": 1}

    @pytest.mark.parametrize("meta_data", [{"key": 5}, {}])
    def test_null_does_not_remove_a_required_value(self, patch, tenant, meta_data):
        create_field(tenant, field_key="key", field_type="integer", is_required=True)

        answer = patch({"key": None, "other": 1}, **meta_data)

        assert answer.get_json()["detail"] == [
            {
                "type": "missing",
                "loc": ["body", "patches", "key"],
                "msg": "Field required",
                "input": {"key": None, "other": 1},
            }
        ]

    def test_other_keys_other_entities_and_other_tenants_fields_do_not_count(self, patch, tenant):
        create_field(tenant, field_key="key", field_type="integer", entity_type="order")
        create_field(create_tenant(), field_key="key", field_type="integer")

        assert patch({"key": "text", "free": {"nested": [None]}}).status_code == 200

    def test_an_archived_field_validates_nothing_and_its_values_stay(self, api, patch, tenant):
        field = create_field(tenant, field_key="key", field_type="integer", is_required=True)
        api.post(f"/v1/custom-fields/{field.id}/archive", token=platform_token())

        answer = patch({"key": "text"}, key=5, other=1)
        untouched = patch({"other": 2}, key=5)

        assert answer.get_json()["data"]["meta_data"] == {"key": "text", "other": 1}
        assert untouched.get_json()["data"]["meta_data"] == {"key": 5, "other": 2}

    def test_a_stored_value_that_no_longer_fits_stays_until_it_is_touched(self, api, patch, tenant):
        create_field(tenant, field_key="key", field_type="select", options=["new"])

        untouched = patch({"other": 1}, key="old")
        touched = patch({"key": "old"}, key="old")

        assert untouched.status_code == 200
        assert touched.status_code == 422

    def test_a_new_users_metadata_is_held_to_the_same_rules(self, api, tenant, token):
        create_field(tenant, field_key="key", field_type="integer")
        body = {"idp_user_id": "u", "email": "a@b.co", "meta_data": {"key": "x"}}

        answer = api.post("/v1/users", token=token, json=body)

        (fault,) = answer.get_json()["detail"]
        assert (fault["type"], fault["loc"]) == ("int_type", ["body", "meta_data", "key"])


class TestValidate:
    def send(self, api, token, values, query=""):
        body = {"entity_type": "order", "values": values}
        return api.post(f"/v1/custom-fields/validate{query}", token=token, json=body)

    def test_answers_that_values_fit(self, api, tenant, token):
        create_field(tenant, entity_type="order", field_key="key", is_required=True)

        answer = self.send(api, token, {"key": "x", "free": None})

        assert answer.get_json() == {"data": {"valid": True}}

    def test_refuses_wrong_missing_and_null_values(self, api, tenant, token):
        create_field(tenant, entity_type="order", field_key="gone", is_required=True)
        create_field(tenant, entity_type="order", field_key="null")
        create_field(tenant, entity_type="order", field_key="wrong", field_type="date")
        values = {"null": None, "wrong": "today"}

        answer = self.send(api, token, values)

        faults = answer.get_json()["detail"]
        assert answer.status_code == 422
        assert [(fault["type"], fault["loc"]) for fault in faults] == [
            ("missing", ["body", "values", "gone"]),
            ("string_type", ["body", "values", "null"]),
            ("date_from_datetime_parsing", ["body", "values", "wrong"]),
        ]
        assert faults[0]["input"] == values
