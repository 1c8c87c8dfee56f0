"""The limit of a connection's requests, which all its tokens share, and the answer beyond it."""

from datetime import timedelta

import pytest

from app.connections import service
from app.connections.oauth import PATH as TOKEN_PATH
from app.core.actors import SYSTEM_CLI
from app.core.db.transactions import RowChanged
from tests.database import platform_transaction
from tests.scim.directory import ERROR, Directory, create_connection

LIMIT = 4


@pytest.fixture
def limited(with_limits):
    return with_limits(RATELIMIT_SCIM=f"{LIMIT}/month")


@pytest.fixture
def tokens(limited, connection):
    """The old and the new token of a rotation, and an access token."""
    row, old = connection
    with platform_transaction():
        new = service.rotate(row.id, overlap=timedelta(hours=1), actor=SYSTEM_CLI).token
    form = {"grant_type": "client_credentials", "client_id": str(row.id), "client_secret": new}
    granted = limited.test_client().post(TOKEN_PATH, data=form).get_json()["access_token"]
    return [old, new, granted]


def test_is_shared_by_all_tokens_of_a_connection_alone(limited, tenant, tokens):
    other = Directory(limited, create_connection(tenant, name="Other")[1])

    answers = [Directory(limited, token).get("/Users") for token in tokens * 2]

    assert [answer.status_code for answer in answers] == [200] * LIMIT + [429] * 2
    remaining = [answer.headers["RateLimit-Remaining"] for answer in answers]
    assert remaining == ["3", "2", "1", "0", "0", "0"]
    assert other.get("/Users").status_code == 200


def test_is_answered_with_scims_body_and_retry_after(limited, tokens):
    answers = [Directory(limited, tokens[0]).get("/Users") for _ in range(LIMIT + 1)]

    assert answers[-1].status_code == 429
    assert answers[-1].content_type == "application/scim+json"
    assert answers[-1].get_json() == {
        "schemas": [ERROR],
        "status": "429",
        "detail": "Too Many Requests",
    }
    assert int(answers[-1].headers["Retry-After"]) > 0
    assert answers[-1].headers["RateLimit-Limit"] == str(LIMIT)


def test_counts_a_request_once_that_is_tried_again(limited, tokens, monkeypatch):
    from app.scim import (
        protocol,
    )  # here, because it takes seconds, and all processes read this file

    serve, attempts = protocol.serve, []

    def serve_again(*arguments):
        attempts.append(arguments)
        if len(attempts) == 1:
            raise RowChanged("scim_users")
        return serve(*arguments)

    monkeypatch.setattr(protocol, "serve", serve_again)

    answer = Directory(limited, tokens[0]).get("/Users")

    assert (answer.status_code, len(attempts)) == (200, 2)
    assert answer.headers["RateLimit-Remaining"] == str(LIMIT - 1)
