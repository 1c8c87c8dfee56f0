"""One stream process for the tests of this folder, and clients of it."""

import time

import pytest

from tests.streams.support import Client, sequencing, stream_process


@pytest.fixture(scope="module")
def port(app, environment, tmp_path_factory):
    """The port of a stream process whose events get their positions."""
    folder = tmp_path_factory.mktemp("streams")
    limits = {
        "STREAM_TENANT_LIMIT": "3",
        "RATELIMIT_ENABLED": "1",
        "RATELIMIT_DEFAULT": "9999/month",  # no window ends between two requests of a test
        "RATELIMIT_FAILED_AUTH": "999/hour",
    }
    settings = {**environment, **limits}
    with sequencing(app), stream_process(settings, folder) as (port, _):
        yield port


@pytest.fixture(autouse=True)
def _positions_grow(superuser):
    """The feed goes on from test to test, as it does in life; between them the tables are emptied."""
    start = int(time.time() * 1000)
    superuser.execute(
        "INSERT INTO event_feed (id, last_position) VALUES (1, %s)"
        " ON CONFLICT (id) DO UPDATE SET last_position = excluded.last_position",
        [start],
    )


@pytest.fixture
def connect(port):
    """Call it with a path, a token and headers; the client is closed after the test."""
    clients = []

    def connect(path, token=None, **headers):
        clients.append(Client(port, path, token, **headers))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()
