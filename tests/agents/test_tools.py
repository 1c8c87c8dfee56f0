"""The tools that are made of the OpenAPI document."""

import re

import jsonschema
import pytest

from app.agents.tools import input_schema, request_of
from app.agents.tools import tools as tools_of
from tests import document

# They answer or take a file.
NOT_JSON = {"GET /v1/audit-events/csv", "POST /v1/imports", "POST /v1/imports/check"}


@pytest.fixture(scope="module")
def tools(app):
    return tools_of(app)


def test_are_all_operations_that_take_a_credential_and_json(app, tools):
    served = app.test_client().get("/openapi.json").get_json()
    offered = {f"{one.method.upper()} {one.path}" for one in tools.values()}

    assert (
        offered
        == {one.name for one in document.operations(served) if one.permission is not None}
        - NOT_JSON
    )


def test_have_names_that_clients_accept(tools):
    assert [name for name in tools if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)] == []


def test_have_schemas_that_stand_alone(tools):
    for one in tools.values():
        schema = input_schema(one)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert "#/components" not in str(schema)
        for name in re.findall(r"#/\$defs/(\w+)", str(schema)):
            assert name in schema["$defs"]


def test_quote_what_stands_in_the_path(tools):
    (lift,) = [one for one in tools.values() if one.path.endswith("/suppressions/{address}")]

    sent = request_of(lift, {"address": "a/../b?c@example.com"})

    assert sent.path.endswith("/suppressions/a%2F..%2Fb%3Fc%40example.com")


@pytest.mark.parametrize(
    ("arguments", "message"), [({"limitt": 1}, "no argument limitt"), ({}, "needs tenant_id")]
)
def test_refuse_arguments_that_make_no_request(tools, arguments, message):
    (get,) = [
        one
        for one in tools.values()
        if (one.method, one.path) == ("get", "/v1/tenants/{tenant_id}")
    ]

    with pytest.raises(ValueError, match=message):
        request_of(get, arguments)
