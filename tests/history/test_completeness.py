"""What the past lacks: the table of the documents, and what answers say."""

from pathlib import Path

from app.history.completeness import ORDER, PARTS, lacks_of

PAGE = Path(__file__).parent.parent.parent / "docs" / "concepts" / "history.md"


def test_the_page_has_the_table():
    _, table = PAGE.read_text().split("## What the past has")
    found = [line for line in table.splitlines() if line.startswith("| ")]

    assert found == [
        "| What | In the past | Named as |",
        *(
            f"| {part.what} | {part.past} | {f'`{part.name}`' if part.name else ''} |"
            for part in PARTS
        ),
    ]


def test_the_operations_read_the_past(app):
    endpoints = {getattr(view, "operation_id", ""): view for view in app.view_functions.values()}

    for part in PARTS:
        assert all(endpoints[name].has_past for name in part.operations)
        assert part.name or not part.operations


def test_an_approximate_order_is_lacking_everywhere():
    assert lacks_of("users_list", is_ordered=True) == []
    assert lacks_of("users_list", is_ordered=False) == [ORDER.name]
