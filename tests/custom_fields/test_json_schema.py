"""GET /v1/custom-fields/json-schema, and that it and the validator agree."""

import json
from uuid import UUID

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.errors import Invalid
from app.custom_fields.json_schema import schema_of
from app.custom_fields.models import CustomField, FieldType
from app.custom_fields.values.check import check
from app.custom_fields.values.rules import Rule
from tests.custom_fields.examples import bad, good, options_of
from tests.custom_fields.fields import create_field
from tests.factories import create_member, platform_token

# What no JSON Schema can say: the service alone refuses these.
FINER_THAN_A_SCHEMA = {
    "value_error",
    "date_from_datetime_parsing",
    "datetime_parsing",
    "datetime_from_date_parsing",
    "timezone_aware",
    "decimal_parsing",  # a newline at the end, which `$` overlooks
}


def field_of(field_type, options=None, *, key="key", is_required=False):
    return CustomField(
        id=UUID(int=1),
        field_key=key,
        label=key,
        field_type=str(field_type),
        options=options,
        is_required=is_required,
        is_searchable=False,
    )


def service_accepts(fields, values) -> bool:
    try:
        check([Rule.of(field) for field in fields], values, (), is_patch=False)
    except Invalid:
        return False
    return True


def schema_accepts(fields, values) -> bool:
    schema = json.loads(json.dumps(schema_of("user", fields)))
    return jsonschema.Draft202012Validator(schema).is_valid(values)


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from([value for _, value in good() if not isinstance(value, list)])
    | st.sampled_from([value for _, value, _ in bad() if not isinstance(value, list | dict)])
    | st.from_regex(r"\A[+-]?[0-9]{0,31}\.?[0-9]{0,31}\n?\Z")
    | st.dates().map(str)
    | st.datetimes().map(lambda moment: f"{moment.isoformat()}Z")
)
json_values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
)
option_lists = st.none() | st.lists(st.sampled_from(["a", "b", "c", "", "Ü"]), max_size=4)


@st.composite
def fields_and_values(draw):
    keys = draw(st.lists(st.sampled_from(["k1", "k2", "k3"]), unique=True, min_size=1))
    fields = []
    for key in keys:
        field_type = draw(st.sampled_from(FieldType))
        options = draw(option_lists) if "select" in field_type else None
        options = None if options is None else list(dict.fromkeys(options))
        fields.append(field_of(field_type, options, key=key, is_required=draw(st.booleans())))
    likely = st.sampled_from(["a", "b", "", "z"])
    value = json_values | likely | st.lists(likely, max_size=3)
    return fields, draw(st.dictionaries(st.sampled_from([*keys, "free"]), value))


unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


class TestAgreement:
    @unhurried
    @given(fields_and_values())
    def test_accepts_everything_that_the_service_accepts(self, case):
        fields, values = case

        if service_accepts(fields, values):
            assert schema_accepts(fields, values)

    @unhurried
    @given(st.sampled_from(FieldType), option_lists, json_values)
    def test_refuses_what_is_of_the_wrong_type_or_no_option(self, field_type, options, value):
        options = options if "select" in field_type else None
        field = field_of(field_type, options)
        try:
            check([Rule.of(field)], {"key": value}, (), is_patch=False)
        except Invalid as refusal:
            refused = {fault["type"] for fault in refusal.errors}
        else:
            return

        if refused - FINER_THAN_A_SCHEMA:
            assert not schema_accepts([field], {"key": value})

    @pytest.mark.parametrize(("field_type", "value"), good())
    def test_accepts_the_good_examples(self, field_type, value):
        fields = [field_of(field_type, options_of(field_type))]

        assert service_accepts(fields, {"key": value})
        assert schema_accepts(fields, {"key": value})

    @pytest.mark.parametrize(("field_type", "value", "refused"), bad())
    def test_refuses_the_bad_examples_where_a_schema_can(self, field_type, value, refused):
        fields = [field_of(field_type, options_of(field_type))]

        assert not service_accepts(fields, {"key": value})
        if refused not in FINER_THAN_A_SCHEMA:
            assert not schema_accepts(fields, {"key": value})

    @unhurried
    @given(st.dictionaries(st.sampled_from(["key", "free"]), st.text(max_size=3)))
    def test_agree_on_missing_required_fields(self, values):
        fields = [field_of(FieldType.TEXT, is_required=True)]

        assert service_accepts(fields, values) == schema_accepts(fields, values)


class TestGetJsonSchema:
    def test_describes_the_active_fields_in_the_order_of_a_form(self, api, tenant):
        _, _, token = create_member(tenant, role="viewer")
        create_field(tenant, field_key="last", label="Last", sort_order=2, is_required=True)
        create_field(tenant, field_key="first", label="First", field_type="long_text")
        create_field(
            tenant, field_key="mid", label="Mid", sort_order=1, field_type="select", options=["a"]
        )
        gone = create_field(tenant, field_key="gone")
        create_field(tenant, field_key="elsewhere", entity_type="order")
        api.post(f"/v1/custom-fields/{gone.id}/archive", token=platform_token())

        answer = api.get("/v1/custom-fields/json-schema?entity_type=user", token=token)

        schema = answer.get_json()["data"]
        assert list(schema["properties"]) == ["first", "mid", "last"]
        assert schema == {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "user",
            "type": "object",
            "properties": {
                "first": {"title": "First", "x-field-type": "long_text", "type": "string"},
                "mid": {"title": "Mid", "x-field-type": "select", "type": "string", "enum": ["a"]},
                "last": {"title": "Last", "x-field-type": "text", "type": "string"},
            },
            "required": ["last"],
        }
