"""What several providers write alike."""

from typing import Any

import pytest

from app.billing.providers import reading
from app.inbox.providers.payloads import Document, Unreadable, Unwanted
from app.subscriptions.schemas import CYCLES


class TestBillingCycle:
    @pytest.mark.parametrize(
        ("interval", "count", "cycle"),
        [
            ("day", 1, "weekly"),
            ("day", 30, "monthly"),
            ("week", 1, "weekly"),
            ("week", 2, "weekly"),
            ("week", 4, "monthly"),
            ("month", 1, "monthly"),
            ("month", 2, "quarterly"),
            ("month", 3, "quarterly"),
            ("month", 6, "semiannual"),
            ("month", 12, "annual"),
            ("year", 1, "annual"),
            ("year", 3, "annual"),
            ("month", None, "monthly"),
            ("month", 0, "monthly"),
            ("year", 2**63 - 1, "annual"),
            ("fortnight", 1, ""),
            ("", None, ""),
        ],
    )
    def test_is_the_nearest_of_ours(self, interval: str, count: int | None, cycle: str) -> None:
        document = Document({"unit": interval, "count": count})

        assert reading.billing_cycle(document, "unit", "count") == cycle

    def test_is_one_that_a_subscription_can_have(self) -> None:
        assert tuple(reading.CYCLES) == CYCLES


class TestValues:
    @pytest.mark.parametrize(
        ("value", "found"),
        [
            (5, 5),
            ("1900", 1900),
            (0, 0),
            (2**63 - 1, 2**63 - 1),
            (2**63, None),
            (-1, None),
            ("-1", None),
            ("19.00", None),
            ("٣", None),
            ("9" * 20, None),
            (5.0, None),
            (True, None),
            (None, None),
            ([5], None),
        ],
    )
    def test_a_whole_number_is_bounded(self, value: Any, found: int | None) -> None:
        assert reading.whole(Document({"n": value}), "n") == found

    @pytest.mark.parametrize(
        ("parts", "found"),
        [
            ([(1900, 5), (100, 2)], 9700),
            ([(1900, 5), (None, 1)], None),
            ([(1900, None)], None),
            ([], None),
            ([(2**62, 2)], None),
            ([(0, 3)], 0),
        ],
    )
    def test_a_total_is_known_if_all_parts_are(self, parts: Any, found: int | None) -> None:
        assert reading.total(parts) == found

    @pytest.mark.parametrize(
        ("metadata", "found"),
        [
            ({"tenant_id": "acme"}, "acme"),
            ({"tenant_id": " acme\n"}, "acme"),
            ({"tenant_id": 42}, "42"),
            ({"tenant_id": "x" * 256}, ""),
            ({"tenant_id": {"id": "acme"}}, ""),
            ({"tenant_id": None}, ""),
            ({"tenant": "acme"}, ""),
            ("acme", ""),
            (None, ""),
        ],
    )
    def test_a_tenant_is_text_of_the_metadata(self, metadata: Any, found: str) -> None:
        assert reading.tenant(Document(metadata)) == found

    def test_the_first_tenant_counts(self) -> None:
        first, second = Document({"tenant_id": "acme"}), Document({"tenant_id": "other"})

        assert reading.tenant(Document({}), first, second) == "acme"

    def test_a_word_is_cut(self) -> None:
        assert reading.word(Document({"a": {"b": "x" * 300}}), "a", "b") == "x" * 255
        assert reading.word(Document({"a": 5}), "a") == ""

    def test_a_reference_is_an_id_or_the_object(self) -> None:
        assert reading.reference(Document({"customer": "cus_1"}), "customer") == "cus_1"
        assert reading.reference(Document({"customer": {"id": "cus_1"}}), "customer") == "cus_1"
        with pytest.raises(Unreadable):
            reading.reference(Document({"customer": {}}), "customer")

    def test_without_an_id_of_a_subscription_it_is_unwanted(self) -> None:
        paths = (("subscription",), ("details", "subscription"))

        found = reading.subscription_of(Document({"details": {"subscription": "sub_1"}}), *paths)

        assert found == "sub_1"
        with pytest.raises(Unwanted):
            reading.subscription_of(Document({"subscription": None}), *paths)


class TestPages:
    PAGE = staticmethod(reading.pages("has_more"))

    def test_continue_after_their_last_id(self) -> None:
        answer = Document({"data": [{"id": "sub_2"}, {"id": "sub_1"}], "has_more": True})

        assert self.PAGE(answer, "").cursor == "sub_1"

    def test_end(self) -> None:
        found = self.PAGE(Document({"data": [], "has_more": False}), "sub_1")

        assert found.subscriptions == []
        assert found.cursor is None

    @pytest.mark.parametrize(
        "answer",
        [
            {},
            {"data": None, "has_more": False},
            {"data": [5], "has_more": False},
            {"data": []},
            {"data": [], "has_more": True},
            {"data": [{}], "has_more": True},
            {"error": {"message": "no"}},
        ],
    )
    def test_that_are_rubbish_are_no_end(self, answer: Any) -> None:
        with pytest.raises(Unreadable):
            self.PAGE(Document(answer), "")

    def test_have_paths_that_no_id_escapes(self) -> None:
        assert reading.below("/v1/customers")("../x?y=1") == "/v1/customers/..%2Fx%3Fy%3D1"
        assert reading.paged("/v1/x?limit=9", "after")("a&b") == "/v1/x?limit=9&after=a%26b"
        assert reading.paged("/v1/x?limit=9", "after")("") == "/v1/x?limit=9"
