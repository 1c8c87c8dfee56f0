"""The OpenAPI document: valid, complete, self-contained."""

from __future__ import annotations

import json
import re

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

METHODS = {"get", "post", "patch", "delete"}


@pytest.fixture(scope="module")
def document(app):
    return app.test_client().get("/openapi.json").get_json()


@pytest.fixture(scope="module")
def operations(document):
    return [
        (method, path, operation)
        for path, found in document["paths"].items()
        for method, operation in found.items()
        if method in METHODS
    ]


class TestDocument:
    def test_is_valid_openapi_3_1(self, document):
        assert document["openapi"].startswith("3.1")
        assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []

    def test_names_every_operation_once(self, operations):
        names = [operation["operationId"] for _, _, operation in operations]

        assert len(set(names)) == len(names)

    def test_every_operation_has_a_tag_a_summary_and_a_described_answer(self, operations):
        for method, path, operation in operations:
            assert operation["tags"], (method, path)
            assert operation["summary"], (method, path)
            assert all(
                answer.get("description") or "$ref" in answer
                for answer in operation["responses"].values()
            )

    def test_reads_take_the_token_that_changes_answer(self, operations):
        for method, path, operation in operations:
            if "x-permission" not in operation:
                continue
            reads = method == "get" or path.startswith("/ofrep/")
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
                assert operation["security"] == [], path
                continue
            assert {"401", "403", "429", "503"} <= operation["responses"].keys(), (method, path)
            assert operation["security"] == [{"user_token": []}, {"api_key": []}]

    def test_every_parameter_and_body_documents_the_422(self, operations):
        for method, path, operation in operations:
            if path.startswith("/ofrep"):
                continue  # OFREP's own errors
            query = [p for p in operation.get("parameters", []) if p["in"] == "query"]
            if query or ("requestBody" in operation and "x-permission" in operation):
                assert "422" in operation["responses"], (method, path)

    def test_operations_with_an_idempotency_key_show_the_422_of_a_reused_one(
        self, document, operations
    ):
        shown = document["components"]["responses"]["INVALID_OR_KEY_REUSED"]["content"]
        example = shown["application/json"]["examples"]["idempotency_key_reused"]["value"]
        name = "#/components/responses/INVALID_OR_KEY_REUSED"

        assert example["detail"][0]["type"] == "idempotency_key_reused"
        for method, path, operation in operations:
            if path.startswith("/ofrep"):
                continue  # OFREP's own errors
            takes_key = "Idempotency-Key" in [p["name"] for p in operation.get("parameters", [])]
            refers = operation["responses"].get("422", {}).get("$ref") == name
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
