"""One port for both processes, as nginx.conf and Caddyfile in docs/operations set it up."""

import pytest

from app.auth.permissions import Permission
from tests.factories import create_api_key, create_preset
from tests.running.proxies import caddy, nginx
from tests.running.serving import program, web_server
from tests.streams.support import Client, address, sequencing, stream_process


@pytest.fixture(scope="module", params=[nginx, caddy], ids=["nginx", "caddy"])
def proxy(request, app, environment, tmp_path_factory):
    """The proxy's port, and the stream process behind it."""
    program(request.param.__name__)
    folder = tmp_path_factory.mktemp("proxy")
    for one in (folder, *folder.parents[:2]):
        one.chmod(0o755)
    settings = {**environment, "TRUSTED_PROXIES": "1"}
    with (
        sequencing(app),
        web_server(settings, folder, workers=1) as (web, _),
        stream_process(settings, folder) as (stream, process),
        request.param(web, folder, stream_port=stream) as port,
    ):
        yield port, process


@pytest.fixture
def key(tenant):
    create_preset("free", beta=False)
    return create_api_key(tenant, [Permission.FLAGS_READ, Permission.EVENTS_READ])


def test_streams_and_reads_that_wait_reach_the_stream_process(api, proxy, tenant, key):
    port, _ = proxy
    answer = api.post("/ofrep/v1/evaluate/flags", token=key, json={})
    flags = Client(port, address(answer.json["eventStreams"][0]))
    feed = Client(port, "/v1/events/stream", key)

    page = Client(port, "/v1/events?wait=1&types=limit.*", key)  # a web process answers 421

    assert (flags.status, feed.status, page.status) == (200, 200, 200)
    assert flags.next()[1]["type"] == "refetchEvaluation"
    assert Client(port, "/v1/events", key).status == 200


def test_without_the_process_a_browser_is_told_to_come_back(proxy, key):
    port, process = proxy
    process.terminate()
    process.wait(20)

    client = Client(port, "/ofrep/v1/events", key)

    assert client.status == 200
    assert client.has_ended.wait(10)
    assert client.retries == [5000]
