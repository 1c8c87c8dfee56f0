"""Values that fit each FieldType, and values that do not, with the type of the refusal."""

GOOD = {
    "text": ["", "Ada", "line\nline", "✓", "x" * 9000],
    "long_text": ["", "line\nline"],
    "integer": [0, -5, 5.0, 2**63 - 1, -(2**63)],
    "decimal": [0, 12.5, -1e-7, 10**29, "12.50", "-0.1", "+7", ".5", "7.", "9" * 30 + ".5"],
    "boolean": [True, False],
    "date": ["2024-02-29", "0001-01-01", "9999-12-31"],
    "datetime": [
        "2024-05-01T10:00:00Z",
        "2024-05-01T10:00:00.123456+02:00",
        "2024-05-01T10:00:00-11:30",
    ],
    "email": ["ada@example.com", "a.b+c@sub.example.co"],
    "url": ["https://example.com", "HTTP://example.com:8080/a?b=c#d", "http://127.0.0.1/"],
    "phone": ["+4930901820", "+14155552671"],
    "select": ["a", "b", ""],
    "multi_select": [[], ["a"], ["b", "", "a"]],
}

BAD = {
    "text": [
        (5, "string_type"),
        (True, "string_type"),
        (["a"], "string_type"),
        ({}, "string_type"),
    ],
    "long_text": [(5, "string_type"), ({"a": "b"}, "string_type")],
    "integer": [
        ("5", "int_type"),
        (True, "int_type"),
        ([5], "int_type"),
        (5.5, "int_from_float"),
        (2**63, "int_parsing_size"),
        (1e19, "int_parsing_size"),
    ],
    "decimal": [
        (True, "decimal_type"),
        ([1], "decimal_type"),
        ("abc", "decimal_parsing"),
        ("", "decimal_parsing"),
        ("1e5", "decimal_parsing"),
        ("1.5\n", "decimal_parsing"),
        ("NaN", "decimal_parsing"),
        ("٣", "decimal_parsing"),
        ("9" * 31, "decimal_parsing"),
        (1e30, "decimal_whole_digits"),
        (-(10**31), "decimal_whole_digits"),
    ],
    "boolean": [("true", "bool_type"), (1, "bool_type"), (0, "bool_type")],
    "date": [
        (20240501, "date_type"),
        ("2024-02-30", "date_from_datetime_parsing"),
        ("2024-5-1", "date_from_datetime_parsing"),
        ("2024-05-01T00:00:00Z", "date_from_datetime_parsing"),
        ("0000-01-01", "date_from_datetime_parsing"),
        ("2024-05-01\n", "date_from_datetime_parsing"),
    ],
    "datetime": [
        (1714557600, "datetime_type"),
        ("2024-05-01T10:00:00", "timezone_aware"),
        ("2024-05-01", "timezone_aware"),
        ("yesterday", "datetime_from_date_parsing"),
        ("2024-05-01 10:00:00Z", "datetime_from_date_parsing"),
        ("1714557600", "datetime_from_date_parsing"),
        ("0001-01-01T00:00:00+02:00", "datetime_parsing"),
    ],
    "email": [
        (5, "string_type"),
        ("ada", "value_error"),
        ("Ada <ada@example.com>", "value_error"),
        (" ada@example.com", "value_error"),
    ],
    "url": [
        (5, "string_type"),
        ("example.com", "value_error"),
        ("ftp://example.com", "value_error"),
        ("https://", "value_error"),
        ("https://exa mple.com", "value_error"),
        ("https://example.com:99999", "value_error"),
        ("https://[::1", "value_error"),
    ],
    "phone": [
        (4930901820, "string_type"),
        ("030 901820", "value_error"),
        ("+49 30 901820", "value_error"),
        ("+4930901820\n", "value_error"),
        ("+999123456789", "value_error"),
        ("+1415", "value_error"),
    ],
    "select": [("c", "enum"), ("A", "enum"), (5, "enum"), (["a"], "enum")],
    "multi_select": [("a", "list_type"), ({}, "list_type"), (["a", "a"], "value_error")],
}

OPTIONS = ["a", "b", ""]


def good():
    return [(type_, value) for type_, values in GOOD.items() for value in values]


def bad():
    return [(type_, value, refused) for type_, cases in BAD.items() for value, refused in cases]


def options_of(field_type: str) -> list[str] | None:
    return OPTIONS if field_type in ("select", "multi_select") else None
