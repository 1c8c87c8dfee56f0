"""docs/guides/clients.md does what it says: its blocks are the programs that run here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.docs.pages import PROJECT, blocks
from tests.factories import create_member, create_tenant
from tests.npm import install_packages
from tests.running.serving import HOST, web_server

PAGE = PROJECT / "docs" / "guides" / "clients.md"
PACKAGES = PROJECT / "tests"
OPTIONS = (
    "--module", "nodenext", "--target", "es2022", "--strict", "--noUncheckedIndexedAccess",
    "--skipLibCheck",  # the types of packages are not looked at
)  # fmt: skip
PRINTED = ("true true", "Augusta 412", "4", "stale_version: ", "422 body.idp_user_id: ")
"""The beginnings of the lines that both programs print."""


def code(language: str) -> list[str]:
    """The page's blocks of a language."""
    return [block.code for block in blocks(PAGE) if block.language == language]


CURL, GENERATE_TYPES, GENERATE_PACKAGE = code("sh")
TYPESCRIPT, PYTHON = code("ts"), code("python")


def run(command: list[str], folder: Path, environ: Mapping[str, str]) -> str:
    """What a command prints; it runs in ``folder`` with the programs of pip and npm."""
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": programs, **environ},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@dataclass
class Reached:
    """Where a client sends its requests, and ``sent``: each request's ``X-Consistency``."""

    environ: dict[str, str]
    sent: list[str | None] = field(default_factory=list)


@pytest.fixture(scope="module")
def document(app) -> Iterator[Reached]:
    """A server of the document alone; any other answer is an empty list with an X-Consistency."""
    body = app.test_client().get("/openapi.json").get_data()
    with answering(body) as reached:
        yield reached


@contextmanager
def answering(document: bytes) -> Iterator[Reached]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_document = self.path == "/openapi.json"
            body = document if is_document else b'{"data": [], "next_cursor": null}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if not is_document:
                reached.sent.append(self.headers["X-Consistency"])
                self.send_header("X-Consistency", f"state-{len(reached.sent)}")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        reached = Reached({"API": f"http://{HOST}:{server.server_port}", "OWNER_TOKEN": "any"})
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield reached
        server.shutdown()


@pytest.fixture(scope="module")
def port(app, environment, tmp_path_factory) -> Iterator[int]:
    """The port of the running service."""
    with web_server(environment, tmp_path_factory.mktemp("web"), workers=1) as (port, _):
        yield port


@pytest.fixture
def service(port) -> Reached:
    """The running service, and the token of an owner of a tenant with three users."""
    tenant = create_tenant()
    _, _, token = create_member(tenant, role="owner")
    for _ in range(2):
        create_member(tenant)
    return Reached({"API": f"http://{HOST}:{port}", "OWNER_TOKEN": token})


class TestTypeScript:
    @pytest.fixture(scope="class")
    @classmethod
    def folder(cls, request, document, tmp_path_factory) -> Path:
        """Where the two programs are compiled with the generated types."""
        folder: Path = tmp_path_factory.mktemp("typescript")
        _, packages = install_packages(PACKAGES, request.config.cache)
        (folder / "node_modules").symlink_to(packages / "node_modules")
        (folder / "package.json").write_text(json.dumps({"type": "module"}))
        run(["bash", "-ec", GENERATE_TYPES], folder, document.environ)
        (folder / "client.ts").write_text("\n".join(TYPESCRIPT))
        (folder / "consistent.ts").write_text(
            TYPESCRIPT[0] + 'for (const _ of "ab") await api.GET("/v1/users");'
        )
        run(["npx", "tsc", *OPTIONS, "client.ts", "consistent.ts"], folder, {})
        return folder

    def test_the_program_of_the_page_works_against_the_service(self, folder, service):
        printed = run(["node", "client.js"], folder, service.environ)

        assert_starts(printed, PRINTED)

    def test_sends_back_what_names_the_state_of_the_data(self, folder, document):
        document.sent.clear()

        run(["node", "consistent.js"], folder, document.environ)

        assert document.sent == [None, "state-1"]


class TestPython:
    @pytest.fixture(scope="class")
    @classmethod
    def folder(cls, document, tmp_path_factory) -> Path:
        """Where the package is generated."""
        folder: Path = tmp_path_factory.mktemp("python")
        (folder / "settings.yaml").write_text("\n".join(code("yaml")))
        run(["bash", "-ec", GENERATE_PACKAGE], folder, document.environ)
        return folder

    def test_the_program_of_the_page_works_against_the_service(self, folder, service):
        printed = self.run(folder, "\n".join(PYTHON), service)

        assert_starts(printed, [line.replace("true", "True", 1) for line in PRINTED])

    def test_sends_back_what_names_the_state_of_the_data(self, folder, document):
        document.sent.clear()

        self.run(folder, PYTHON[0] + "for _ in 'ab':\n    users_list.sync(client=api)\n", document)

        assert document.sent == [None, "state-1"]

    @staticmethod
    def run(folder: Path, source: str, reached: Reached) -> str:
        (folder / "program.py").write_text(source)
        environ = {**reached.environ, "PYTHONPATH": str(folder / "client")}
        return run([sys.executable, "program.py"], folder, environ)


class TestCurl:
    def test_shows_readable_json(self, service, tmp_path):
        printed = run(["bash", "-ec", CURL], tmp_path, service.environ)

        assert printed.startswith('{\n    "data": [\n')


def assert_starts(printed: str, beginnings: list[str] | tuple[str, ...]) -> None:
    lines = printed.splitlines()
    wrong = [
        pair for pair in zip(lines, beginnings, strict=True) if not pair[0].startswith(pair[1])
    ]
    assert wrong == []
