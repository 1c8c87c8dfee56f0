"""A credential is counted as one, however its header is written."""

import pytest

from app.core.ratelimit import caller


@pytest.mark.parametrize("header", ["bearer sk_1", "BEARER sk_1", "Bearer   sk_1", "Bearer \tsk_1 "])
def test_a_credential_in_another_spelling_counts_as_the_same(app, header):
    with app.test_request_context(headers={"Authorization": "Bearer sk_1"}):
        usual = caller()

    with app.test_request_context(headers={"Authorization": header}):
        assert caller() == usual


def test_two_credentials_count_each(app):
    callers = set()
    for credential in ("sk_1", "sk_2"):
        with app.test_request_context(headers={"Authorization": f"Bearer {credential}"}):
            callers.add(caller())

    assert len(callers) == 2
