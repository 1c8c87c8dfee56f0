"""Finding ids and addresses in texts and documents."""

import time

import pytest

from app.privacy.identifiers import FEW, Identifiers

ANN = Identifiers(frozenset(), frozenset({"ann@example.com"}))


@pytest.mark.parametrize(
    "text",
    [
        "joann@example.com",
        "mary-ann@example.com",
        "jo.ann@example.com",
        "ann@example.com.au",
        "ann@example.community",
    ],
)
def test_an_address_is_not_found_in_another_one(text):
    assert ANN.redact({text: [text]}) == {text: [text]}
    assert not ANN.are_in_body(f'{{"email": "{text}"}}'.encode())


@pytest.mark.parametrize(
    "text",
    [
        "<Ann@Example.com>",
        "Write to ann@example.com.",
        "mailto:ann@example.com?subject=x",
        "name=Ann+ann@example.com&x=y",
        "550-ann@example.com: unknown",
        "\u8bf7ann@example.com\u8bf7",
        "joann@example.com, ann@example.com",
    ],
)
def test_an_address_is_found_in_a_longer_text(text):
    assert ANN.redact({"x": text}) == {"x": "[erased]"}


def test_many_addresses_are_searched_in_a_time_linear_in_the_text():
    who = Identifiers(frozenset(), frozenset(f"user{n}@example.com" for n in range(FEW + 1)))
    body = b'{"email": "a@b.example", "text": "%s"}' % (b"a" * 100_000)
    start = time.process_time()

    assert not who.are_in_body(body)
    assert who.are_in_body(body.replace(b"a@b.example", b"<user7@example.com>"))

    assert time.process_time() - start < 6
