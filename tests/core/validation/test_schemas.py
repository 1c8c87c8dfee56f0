from collections import namedtuple
from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import UUID

import pytest

from app.core.errors import Invalid
from app.core.validation import fields
from app.core.validation.schemas import Schema
from tests.core.validation.refusing import LONE_SURROGATE


class OrderSchema(Schema):
    name = fields.Str(required=True, min_length=1)
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


class TestLoad:
    def test_refuses_an_unknown_key_that_is_no_text(self):
        with pytest.raises(Invalid) as raised:
            OrderSchema().load({"name": "a", LONE_SURROGATE: 1})

        assert [(one["loc"], one["type"]) for one in raised.value.errors] == [
            ([], "string_unicode")
        ]

    def test_loads_defaults_and_leaves_out_what_is_absent(self):
        loaded = OrderSchema().load({"name": "a", "paidAt": 0})

        assert loaded == {
            "name": "a",
            "amount": 0,
            "note": None,
            "paid_at": datetime(1970, 1, 1, tzinfo=UTC),
        }


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
