"""The operations of a document, and the requests that are made from them."""

import pytest

from app.surfaces.operations import Operation, Request, operations_of

ROW = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "updated_at": {"type": "string"},
        "kind": {"$ref": "#/components/schemas/Kind"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
DOCUMENT = {
    "components": {
        "schemas": {
            "Kind": {"type": "string", "enum": ["a", "b"], "description": "A kind."},
            "Row": ROW,
            "Change": {
                "type": "object",
                "required": ["kind"],
                "properties": {
                    "kind": {"$ref": "#/components/schemas/Kind", "default": "a"},
                    "until": {"type": ["string", "null"], "format": "date-time"},
                    "other": {"anyOf": [{"$ref": "#/components/schemas/Kind"}, {"type": "null"}]},
                },
            },
        }
    },
    "paths": {
        "/rows/{row_id}": {
            "parameters": [{"name": "row_id", "in": "path", "required": True, "schema": {}}],
            "get": {
                "operationId": "rows_list",
                "tags": ["rows"],
                "summary": "List rows.",
                "x-permission": "rows:read",
                "parameters": [
                    {"name": "cursor", "in": "query", "schema": {"type": "string"}},
                    {"name": "is_active", "in": "query", "schema": {"type": "boolean"}},
                    {
                        "name": "include",
                        "in": "query",
                        "schema": {"type": "array", "items": {"enum": ["x", "y"]}},
                    },
                    {
                        "name": "meta",
                        "in": "query",
                        "style": "deepObject",
                        "schema": {"type": "object"},
                    },
                    {"name": "If-Match", "in": "header", "schema": {"type": "string"}},
                ],
                "responses": {
                    "200": {
                        "content": {
                            "application/json": {
                                "schema": {
                                    "properties": {
                                        "data": {
                                            "type": "array",
                                            "items": {"$ref": "#/components/schemas/Row"},
                                        }
                                    }
                                }
                            }
                        }
                    }
                },
            },
            "patch": {
                "operationId": "rows_update",
                "tags": ["rows"],
                "summary": "Update a row.",
                "x-columns": ["id"],
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Change"}}
                    },
                },
                "responses": {"204": {"description": "Done."}},
            },
        }
    },
}


@pytest.fixture
def listing() -> Operation:
    return operations_of(DOCUMENT)[0]


@pytest.fixture
def update() -> Operation:
    return operations_of(DOCUMENT)[1]


class TestOperation:
    def test_is_described(self, listing, update):
        assert (listing.name, listing.group, listing.summary) == ("rows_list", "rows", "List rows")
        assert (listing.permission, update.permission) == ("rows:read", None)
        assert (listing.is_reading, update.is_reading) == (True, False)
        assert (listing.is_list, update.is_list) == (True, False)
        assert (listing.page_parameter, update.page_parameter) == ("cursor", None)
        assert (listing.includes, update.includes) == (("x", "y"), ())
        assert (listing.media_type, update.media_type) == (None, "application/json")
        assert (listing.needs_body, update.needs_body) == (False, True)

    def test_has_the_columns_that_it_names_or_the_first_scalars(self, listing, update):
        assert (listing.columns, update.columns) == (("id", "kind"), ("id",))

    def test_has_the_parameters_and_the_fields_of_its_body(self, update):
        assert [(one.name, one.place, one.required) for one in update.arguments] == [
            ("row_id", "path", True),
            ("kind", "body", True),
            ("until", "body", False),
            ("other", "body", False),
        ]

    def test_follows_references_and_notes_null(self, update):
        _, kind, until, other = (one.schema for one in update.arguments)

        assert (kind["enum"], kind["default"]) == (["a", "b"], "a")
        assert (until["type"], until["nullable"]) == ("string", True)
        assert (other["enum"], other["nullable"]) == (["a", "b"], True)
        assert update.arguments[1].description == "A kind."


class TestRequest:
    def test_has_each_value_in_its_place(self, listing):
        values = {
            "row_id": "a/b",
            "is_active": True,
            "include": ["x", "y"],
            "meta": {"team": "red"},
            "If-Match": '"1"',
            "cursor": None,
        }

        assert listing.request(values) == Request(
            "GET",
            "/rows/a%2Fb",
            {"is_active": "true", "include": "x,y", "meta[team]": "red"},
            {"If-Match": '"1"'},
        )

    @pytest.mark.parametrize(
        ("values", "sentence"),
        [
            ({"row_id": "1", "x": 1}, "rows_list has no argument x."),
            ({}, "rows_list needs row_id."),
            ({"row_id": ""}, "rows_list needs row_id."),
        ],
    )
    def test_that_cannot_be_made_is_refused(self, listing, values, sentence):
        with pytest.raises(ValueError, match=sentence):
            listing.request(values)
