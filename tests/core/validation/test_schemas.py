from collections import namedtuple
from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import UUID

import marshmallow as ma
import pytest

from app.core.errors import Invalid
from app.core.validation import fields
from app.core.validation.messages import MAX_ENTRIES
from app.core.validation.schemas import Schema
from tests.core.validation.refusing import LONE_SURROGATE


class OrderSchema(Schema):
    name = fields.Str(required=True, min_length=1)
    tags = fields.ListOf(fields.Str())
    amount = fields.Int(ge=0, load_default=0)
    note = fields.Str(nullable=True, load_default=None)
    paid_at = fields.AwareDateTime(data_key="paidAt")


class RowSchema(Schema):
    id = fields.Uuid(required=True)
    created_at = fields.AwareDateTime(required=True)
    name = fields.Str(required=True)
    options = fields.ListOf(fields.Str(), nullable=True)
    amount = fields.Int(attribute="amount_in_cents")


Row = namedtuple("Row", "id created_at name options amount_in_cents secret")


def refused(schema: Schema, data: object) -> list[tuple]:
    with pytest.raises(Invalid) as raised:
        schema.load(data)
    return [(tuple(entry["loc"]), entry["type"]) for entry in raised.value.errors]


class TestLoad:
    @pytest.fixture
    def schema(self):
        return OrderSchema()

    def test_loads_defaults_and_leaves_out_what_is_absent(self, schema):
        loaded = schema.load({"name": "a", "paidAt": 0})

        assert loaded == {
            "name": "a",
            "amount": 0,
            "note": None,
            "paid_at": datetime(1970, 1, 1, tzinfo=UTC),
        }

    def test_refuses_an_unknown_key_that_is_no_text(self, schema):
        assert refused(schema, {"name": "a", LONE_SURROGATE: 1}) == [((), "string_unicode")]

    def test_lists_no_more_refusals_than_an_answer_can_bear(self, schema):
        data = {"name": "a", **{str(number): 1 for number in range(MAX_ENTRIES + 10)}}

        assert len(refused(schema, data)) == MAX_ENTRIES

    def test_ignores_or_includes_unknown_fields_where_told(self, schema):
        data = {"name": "a", "other": 1}

        assert "other" not in schema.load(data, unknown=ma.EXCLUDE)
        assert schema.load(data, unknown=ma.INCLUDE)["other"] == 1


class TestDump:
    ID = UUID("018f0000-0000-7000-8000-00000000000a")

    def row(self) -> dict:
        return {
            "amount_in_cents": 5,
            "options": None,
            "name": None,
            "created_at": datetime(2026, 1, 31, 12, tzinfo=UTC),
            "id": self.ID,
            "secret": "s",
        }

    def test_writes_the_declared_fields_in_their_order(self):
        written = RowSchema().dump(SimpleNamespace(**self.row()))

        assert list(written.items()) == [
            ("id", self.ID),
            ("created_at", datetime(2026, 1, 31, 12, tzinfo=UTC)),
            ("name", ""),
            ("options", None),
            ("amount", 5),
        ]

    def test_writes_dicts_rows_and_lists_alike(self):
        schema = RowSchema(many=True)

        written = RowSchema().dump(SimpleNamespace(**self.row()))

        assert schema.dump([self.row(), Row(**self.row())]) == [written, written]

    def test_writes_a_single_field(self):
        class Name(Schema):
            name = fields.Str()

        assert Name().dump({"name": "a"}) == {"name": "a"}
        assert Name().dump(SimpleNamespace(name="a")) == {"name": "a"}
