"""OpenFeature's web provider in Chromium: a flag on the page follows an override, without polling."""

import functools
import shutil
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.factories import create_member, create_preset, create_tenant, platform_token
from tests.npm import install_packages
from tests.ports import free_port
from tests.running.serving import web_server
from tests.streams.support import sequencing, stream_process

CHROMIUM = shutil.which("chromium")
PAGE = """
<!doctype html>
<p id="flag"></p>
<script type="importmap">
{"imports": {
  "@openfeature/core": "/node_modules/@openfeature/core/dist/esm/index.js",
  "@openfeature/web-sdk": "/node_modules/@openfeature/web-sdk/dist/esm/index.js",
  "@openfeature/ofrep-core":
    "/node_modules/@openfeature/ofrep-web-provider/node_modules/@openfeature/ofrep-core/index.esm.js",
  "@openfeature/ofrep-web-provider": "/node_modules/@openfeature/ofrep-web-provider/index.esm.js"
}}
</script>
<script type="module">
import { OpenFeature, ProviderEvents } from '@openfeature/web-sdk';
import { OFREPWebProvider } from '@openfeature/ofrep-web-provider';

const [baseUrl, token] = decodeURIComponent(location.hash.slice(1)).split(' ');
const client = OpenFeature.getClient();
const show = () => {
  document.getElementById('flag').textContent = client.getStringValue('theme', 'default');
};
client.addHandler(ProviderEvents.ConfigurationChanged, show);
await OpenFeature.setProviderAndWait(
  new OFREPWebProvider({
    baseUrl,
    headers: [['Authorization', `Bearer ${token}`]],
    cacheMode: 'disabled',
  }),
);
show();
</script>
"""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium on the PATH")


@pytest.fixture(scope="module")
def site(request, tmp_path_factory):
    """The origin of a page with the packages beside it."""
    _, packages = install_packages(Path(__file__).parents[1], request.config.cache)
    folder = tmp_path_factory.mktemp("site")
    (folder / "node_modules").symlink_to(packages / "node_modules")
    (folder / "page.html").write_text(PAGE)
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def page():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


def shows(page, text, seconds):
    page.wait_for_function(
        "text => document.getElementById('flag').textContent === text",
        arg=text,
        timeout=seconds * 1000,
        polling=20,
    )


def test_a_flag_follows_an_override_without_polling(app, api, environment, site, page, tmp_path):
    create_preset("free", theme="plain")
    tenant = create_tenant()
    token = create_member(tenant, role="member")[2]
    port, requests = free_port(), []
    page.on("request", lambda request: requests.append((request.method, request.url)))
    settings = {**environment, "CORS_ORIGINS": site, "STREAM_URL": f"http://127.0.0.1:{port}"}
    body = {"flag_key": "theme", "flag_value": "bright"}
    path = f"/v1/billing/flags/overrides?tenant_id={tenant.id}"
    renamed = api.patch(f"/v1/tenants/{tenant.id}", token=platform_token(), json={"name": "Acme"})
    assert renamed.status_code == 200
    api.sequence()  # without a feed there is no grant

    with (
        sequencing(app),
        web_server(settings, tmp_path, workers=1) as (web, _),
        stream_process(settings, tmp_path, port=port),
    ):
        page.goto(f"{site}/page.html#http://127.0.0.1:{web} {token}")
        shows(page, "plain", 20)
        time.sleep(1)
        made = api.post(path, token=platform_token(), json=body)
        assert made.status_code == 201
        shows(page, "bright", 10)
        before = len(requests)
        page.wait_for_timeout(1500)
        assert len(requests) == before

    assert not any("token" in url for _, url in requests)
    assert any("flagConfigEtag" in url for _, url in requests)
