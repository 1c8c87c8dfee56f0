"""From bytes to lines and sets."""

import pytest

from app.imports.lines import MAX_LINE, MAX_SET_BLANK, sets, split
from tests.imports.files import (
    as_file,
    member_line,
    override_line,
    subscription_line,
    tenant_line,
    user_line,
)


class TestSplit:
    @pytest.mark.parametrize("size", [1, 2, 7, 1000])
    def test_gives_the_same_lines_for_blocks_of_any_size(self, size):
        content = b"first\nsecond\r\n\n\nlast"
        blocks = [content[start : start + size] for start in range(0, len(content), size)]

        found = list(split(blocks))

        assert [one.text for one in found] == [b"first", b"second\r", b"", b"", b"last"]
        assert [one.number for one in found] == [1, 2, 3, 4, 5]
        assert [one.end for one in found] == [6, 14, 15, 16, len(content)]

    def test_continues_at_any_line(self):
        content = b"first\nsecond\nthird\n"
        first, *others = split([content])

        assert list(split([content[first.end :]], end=first.end, number=1)) == others

    @pytest.mark.parametrize("size", [4096, MAX_LINE, 5 * MAX_LINE])
    def test_drops_lines_that_are_too_long(self, size):
        content = b"a\n" + b"x" * (3 * MAX_LINE) + b"\nb\n" + b"y" * (MAX_LINE + 1)
        blocks = [content[start : start + size] for start in range(0, len(content), size)]

        found = list(split(blocks))

        assert [one.text for one in found] == [b"a", None, b"b", None]
        assert found[-1].end == len(content)

    def test_takes_a_line_of_exactly_the_limit(self):
        (line,) = split([b"x" * MAX_LINE])

        assert line.text == b"x" * MAX_LINE


def sizes(*objects):
    return [len(one.lines) for one in sets(split([as_file(*objects)]))]


class TestSets:
    def test_have_no_two_lines_about_one_row(self):
        assert sizes(tenant_line("a"), tenant_line("b"), tenant_line("a")) == [2, 1]
        assert sizes(user_line("a"), user_line("a", "other"), user_line("a")) == [2, 1]

    def test_end_before_a_subscription_after_an_override(self):
        lines = [subscription_line(), override_line("a", 1), tenant_line(), subscription_line("s")]

        assert sizes(*lines) == [3, 1]

    def test_end_before_people_after_an_assignment(self):
        assignment = {
            "type": "role_assignment",
            "idp_org_id": "org",
            "idp_user_id": "a",
            "role": "x",
        }

        assert sizes(assignment, b"{}", tenant_line(), user_line("a"), member_line("a")) == [3, 2]

    def test_are_limited_in_bytes(self):
        assert sizes(*(tenant_line(f"o{n}", name="x" * 900_000) for n in range(3))) == [2, 1]

    def test_of_blank_lines_end_too(self):
        found = list(sets(split([b"\n" * (2 * MAX_SET_BLANK)])))

        assert [one.last for one in found] == [MAX_SET_BLANK, 2 * MAX_SET_BLANK]
        assert found[-1].end == 2 * MAX_SET_BLANK
