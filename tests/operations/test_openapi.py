"""The OpenAPI document: valid, complete, self-contained."""

import json
import re

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from app.core.http.body_limits import MAX_BODY
from app.imports.routes import MAX_BODY as LARGEST_IMPORT
from app.imports.routes import MEDIA_TYPES
from tests.changes import changes, make_world, prepare
from tests.conftest import Api
from tests.document import operations as every_operation
from tests.document import resolved
from tests.factories import platform_token

VERB = re.compile(
    "accept|archive|assign|cancel|check|consume|correct|create|decline|delete|evaluate|explain|export|extend|find|get|grant|lift|list"
    "|patch|pause|preview|receive|reconcile|recover|release|renew|reorder|replay|request|resend|restore|resume|revoke|rewind|rotate"
    "|send|set|settle|suspend|sweep"
    "|test|update|validate|verify|withdraw"
)
VERBS = {
    ("get", False): "list",
    ("post", False): "create",
    ("get", True): "get",
    ("patch", True): "update",
    ("put", True): "set",
    ("delete", True): "delete",
}
"""The verb of a collection's and of a row's operations, by method and whether it is a row's."""
OTHER_VERBS = {
    ("get", "/v1/search"),  # it finds
    ("get", "/v1/billing/flags/flagd.json"),  # it exports
    ("put", "/v1/usage/{feature}"),
    ("put", "/v1/billing/prices"),
    ("delete", "/v1/api-keys/{key_id}"),  # a revoked key stays in the list
    ("delete", "/v1/invitations/{invitation_id}"),  # as well
    ("delete", "/v1/setup-links/{setup_link_id}"),  # as well
    ("delete", "/v1/tenants/{tenant_id}"),  # these two ask for what happens later
    ("delete", "/v1/users/{user_id}"),
}
ONLY_SOMETIMES = {"X-Consistency", "X-Plan-Unknown", "X-Update-Ignored"}
"""Headers that the document describes, and that most answers do not have."""
SHOWN_ONCE = {"secret", "token"}  # of a new credential
WITH_URL = {"/v1/invitations", "/v1/setup-links"}  # it contains the token
FASTAPIS = {"HTTPValidationError", "ValidationError"}  # word for word


def verb_of(operation):
    return operation["operationId"].removeprefix(operation["tags"][0] + "_").partition("_")[0]


def is_operation_id(name, tag):
    """``<tag>_<verb>``, or ``<tag>_<verb>_<part>`` where the part is not the resource again."""
    rest = name.removeprefix(f"{tag}_")
    verb, _, part = rest.partition("_")
    again = {tag, tag.removesuffix("s"), tag.rpartition("_")[2], tag.rpartition("_")[2].rstrip("s")}
    return rest != name and VERB.fullmatch(verb) and part not in again


def invalid_of(path):
    """The status of a request that is not valid; AuthZEN wants another one."""
    return "400" if path.startswith("/access/v1/") else "422"


def undescribed(part, place=""):
    """The fields, parameters and headers below ``part`` that have no description."""
    if isinstance(part, list):
        for number, item in enumerate(part):
            yield from undescribed(item, f"{place}[{number}]")
    if not isinstance(part, dict):
        return
    for kind in ("properties", "headers"):
        for name, field in part.get(kind, {}).items():
            if not field.get("description") and not (kind == "headers" and "$ref" in field):
                yield f"{place}.{name}"
            yield from undescribed(field, f"{place}.{name}")
    for parameter in part.get("parameters", ()):
        if not parameter.get("description"):
            yield f"{place}?{parameter['name']}"
    for name, below in part.items():
        if name not in {"properties", "headers", "example", "examples", *FASTAPIS}:
            yield from undescribed(below, f"{place}/{name}")


@pytest.fixture(scope="module")
def document(app):
    return app.test_client().get("/openapi.json").get_json()


@pytest.fixture(scope="module")
def operations(document):
    return [(one.method, one.path, one.about) for one in every_operation(document)]


class TestDocument:
    def test_is_valid_openapi_3_1(self, document):
        assert document["openapi"].startswith("3.1")
        assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []

    def test_operation_ids_are_a_tag_and_a_verb(self, operations):
        wrong = [
            operation["operationId"]
            for _, _, operation in operations
            if not is_operation_id(operation["operationId"], operation["tags"][0])
        ]

        assert wrong == []

    def test_operations_on_collections_and_rows_have_their_verb(self, operations):
        wrong = [
            (method, path, operation["operationId"], operation["summary"])
            for method, path, operation in operations
            if re.fullmatch(r"/v1/(billing/)?[a-z-]+(/{\w+})?", path)
            and (method, path) not in OTHER_VERBS
            and {verb_of(operation), operation["summary"].split()[0].lower()}
            != {VERBS[method, path.endswith("}")]}
        ]

        assert wrong == []

    def test_reads_take_the_token_that_changes_answer(self, operations):
        for method, path, operation in operations:
            if "x-permission" not in operation:
                continue
            reads = method == "get" or operation["x-permission"].endswith(":read")
            taken = {parameter["name"] for parameter in operation.get("parameters", ())}
            answered = {
                name
                for status, answer in operation["responses"].items()
                if status.startswith("2")
                for name in answer.get("headers", ())
            }
            assert ("X-Consistency" in taken) is reads, (method, path)
            assert ("X-Consistency" in answered) is not reads, (method, path)

    def test_every_json_body_has_an_example_that_fits_its_schema(self, document, operations):
        wrong = []
        for method, path, operation in operations:
            bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
            for content in (c for body in bodies for c in body.get("content", {}).items()):
                kind, media = content
                if kind != "application/json" or "schema" not in media:
                    continue
                if "example" not in media and "examples" not in media:
                    wrong.append((method, path, "no example"))
                    continue
                schema = {**media["schema"], "components": document["components"]}
                named = [one["value"] for one in media.get("examples", {}).values()]
                for example in named or [media["example"]]:
                    faults = Draft202012Validator(schema).iter_errors(example)
                    wrong += [(method, path, fault.message) for fault in faults]

        assert wrong == []

    def test_guarded_operations_document_their_refusals(self, operations):
        for method, path, operation in operations:
            if "x-permission" not in operation:
                is_for_anybody = path == "/v1/invitations/accept"  # who has a user token
                assert operation["security"] == ([{"user_token": []}] if is_for_anybody else []), (
                    path
                )
                continue
            assert {"401", "403", "429", "503"} <= operation["responses"].keys(), (method, path)
            assert operation["security"] == [{"user_token": []}, {"api_key": []}]

    def test_every_parameter_and_body_documents_the_422(self, operations):
        for method, path, operation in operations:
            if path.startswith("/ofrep"):
                continue  # OFREP's own errors
            query = [p for p in operation.get("parameters", []) if p["in"] == "query"]
            if query or ("requestBody" in operation and "x-permission" in operation):
                assert invalid_of(path) in operation["responses"], (method, path)

    def test_operations_with_an_idempotency_key_show_the_422_of_a_reused_one(
        self, document, operations
    ):
        shown = document["components"]["responses"]["INVALID_OR_KEY_REUSED"]["content"]
        example = shown["application/json"]["examples"]["idempotency_key_reused"]["value"]
        names = {"422": "INVALID_OR_KEY_REUSED", "400": "INVALID_OR_UNREADABLE"}

        assert example["detail"][0]["type"] == "idempotency_key_reused"
        for method, path, operation in operations:
            if path.startswith("/ofrep"):
                continue  # OFREP's own errors
            takes_key = "Idempotency-Key" in [p["name"] for p in operation.get("parameters", [])]
            status = invalid_of(path)
            name = f"#/components/responses/{names[status]}"
            refers = operation["responses"].get(status, {}).get("$ref") == name
            assert refers == takes_key, (method, path)

    def test_points_at_no_outside_host(self, app):
        page = app.test_client().get("/docs/").get_data(as_text=True)

        assert re.findall(r"(?:src|href)=[\"']https?://[^\"']+", page) == []

    def test_validation_errors_are_fastapis(self, document):
        schemas = document["components"]["schemas"]

        assert list(schemas["HTTPValidationError"]["properties"]) == ["detail"]
        assert list(schemas["ValidationError"]["properties"]) == [
            "loc",
            "msg",
            "type",
            "input",
            "ctx",
        ]
        assert schemas["ValidationError"]["required"] == ["loc", "msg", "type"]
        assert "example" not in json.dumps(schemas["ValidationError"])


class TestNamesInClients:
    """Generated clients name a class after each component, and after each schema that is inline."""

    def test_say_what_they_are_of(self, document):
        general = (
            "Cause Change Consume Correction Deactivate Decision Entry Kind Layer Level Order"
            " Outcome Period Policy Queues Signing Status Step Valid Values Waiting"
        )

        assert document["components"]["schemas"].keys() & {*general.split()} == set()

    def test_are_not_those_of_a_field(self, document):
        """A generated class has a variable of its own name beside its fields."""
        wrong = [
            name
            for name, schema in document["components"]["schemas"].items()
            if re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() in schema.get("properties", {})
        ]

        assert wrong == []

    def test_of_includes_are_one_for_each_resource(self, operations):
        items = {
            (method, path): parameter["schema"]["items"]
            for method, path, operation in operations
            for parameter in operation.get("parameters", ())
            if parameter["name"] == "include"
        }

        assert all(item["$ref"].endswith("Include") for item in items.values())
        assert len({item["$ref"] for item in items.values()}) < len(items) > 20

    def test_of_evaluations_are_components(self, operations):
        inline = [
            (path, status)
            for _, path, operation in operations
            if path.startswith("/ofrep/")
            for status, answer in operation["responses"].items()
            for media in answer.get("content", {}).values()
            if "$ref" not in media["schema"]
        ]

        assert inline == []


class TestDescriptions:
    def test_every_component_is_described_but_the_envelopes(self, document):
        silent = [
            name
            for name, schema in document["components"]["schemas"].items()
            if name not in FASTAPIS
            and not schema.get("description")
            and "data" not in schema.get("required", ())
        ]

        assert silent == []

    def test_every_field_parameter_and_header_is_described(self, document):
        assert list(undescribed(document)) == []

    def test_no_text_has_the_markup_of_docstrings(self, document):
        assert re.findall(r"``|:\w+:`", json.dumps(document)) == []

    def test_every_summary_is_a_sentence_in_the_imperative(self, operations):
        summaries = [operation["summary"] for _, _, operation in operations]

        wrong = [
            one
            for one in summaries
            if not re.fullmatch(r"(?!\w+(s|ed|ing)\b)[A-Z][a-z-]+\b.*\.", one)
        ]

        assert wrong == []


class TestExamplesOfRefusals:
    """The examples are what the service answers, for each operation that has one."""

    def test_without_a_credential(self, app, api):
        shown = examples_of(app, "401")

        for one, example in shown:
            answer = api.request(one.method, one.path_of("x"))

            assert (answer.status_code, answer.get_json()) == (401, example), one.name
        assert len(shown) > 100

    @pytest.mark.parametrize(
        ("status", "body"), [(413, b" " * (MAX_BODY + 1)), (400, b"[" * 200 + b"]" * 200)]
    )
    def test_of_a_body_that_is_too_large_or_unreadable(self, app, api, status, body):
        sent = {"token": platform_token(), "data": body, "content_type": "application/json"}
        shown = [(one, found) for one, found in examples_of(app, str(status)) if one.body]

        for one, example in shown:
            answer = api.request(one.method, one.path_of("x"), **sent)

            assert (answer.status_code, answer.get_json()) == (status, example), one.name
        assert len(shown) > 20

    @pytest.mark.parametrize(("status", "content_type"), [(413, MEDIA_TYPES[0]), (415, "text/csv")])
    def test_of_an_import(self, app, api, status, content_type):
        shown = {one.name: example for one, example in examples_of(app, str(status))}

        answer = api.post(
            "/v1/imports",
            token=platform_token(),
            data=b"\n" * (LARGEST_IMPORT + 1),
            content_type=content_type,
        )

        assert answer.status_code == status
        assert answer.get_json() == shown["POST /v1/imports"]

    def test_beyond_the_rate_limit(self, app, with_limits):
        limited = with_limits(RATELIMIT_DEFAULT="1/month")

        answers = [Api(limited).get("/v1/users", token="sk_x") for _ in range(2)]

        assert answers[1].status_code == 429
        for one, example in examples_of(app, "429"):
            assert answers[1].get_json() == example, one.name


class TestAnswersOfChanges:
    def test_are_as_described_and_of_creations_what_the_location_answers(self, app, api):
        world = make_world(app)
        wrong, compared, created = [], 0, 0
        for one in changes(app):
            answer = prepare(api, world, one)()
            described = headers_of(one, answer.status_code)
            if described - set(answer.headers.keys()) - ONLY_SOMETIMES:
                wrong.append((one.name, described))
            assert (answer.status_code == 201) == ("Location" in described), one.name
            data = (answer.get_json(silent=True) or {}).get("data")
            if isinstance(data, dict):
                fields = fields_of_data(one, answer.status_code)
                if list(data) != [name for name in fields if name in data]:
                    wrong.append((one.name, list(data)))
                compared += 1
            if answer.status_code == 201:
                found = api.get(answer.headers["Location"], token=world["token"])
                hidden = SHOWN_ONCE | ({"url"} if one.path in WITH_URL else set())
                shown = {name: value for name, value in data.items() if name not in hidden}
                assert found.get_json()["data"] == shown, one.name
                assert found.headers["ETag"] == answer.headers["ETag"] == '"1"', one.name
                created += 1

        assert wrong == []
        assert compared > 25
        assert created > 6


class TestHeadersOfAnswers:
    def test_say_when_to_send_again(self, operations):
        silent = [
            (method, path, status)
            for method, path, operation in operations
            if operation.get("x-permission") and not path.startswith("/ofrep/")
            for status in ("429", "503")
            if "Retry-After" not in operation["responses"][status].get("headers", ())
        ]

        assert silent == []


def fields_of_data(operation, status):
    """The fields that the document has for the ``data`` of an answer."""
    content = operation.about["responses"][str(status)]["content"]["application/json"]
    envelope = resolved(operation.document, content["schema"])
    return resolved(operation.document, envelope["properties"]["data"])["properties"]


def headers_of(operation, status):
    """The headers that the document has for an answer."""
    return set(operation.about["responses"][str(status)].get("headers", ()))


def examples_of(app, status):
    """The operations of /v1 that have a single example of an answer, and the example."""
    document = app.test_client().get("/openapi.json").get_json()
    return [
        (one, media["example"])
        for one in every_operation(document)
        if one.path.startswith("/v1/") and one.permission
        for media in one.about["responses"].get(status, {}).get("content", {}).values()
        if "example" in media
    ]
