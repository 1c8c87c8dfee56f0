"""The two client packages, built and installed as docs/guides/clients.md says, against the service.

Its blocks are the programs that run here.
"""

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from app.core.version import VERSION
from app.tenants.models import Tenant
from tests.clients.lossy import Sent, losing_first_answers
from tests.database import row
from tests.docs.pages import PROJECT, blocks
from tests.factories import (
    create_api_key,
    create_limits,
    create_member,
    create_subscription,
    create_tenant,
    limit_flag,
    platform_token,
    preset_flag,
)
from tests.npm import install_packages
from tests.ports import free_port
from tests.running.serving import HOST, web_server

PAGE = PROJECT / "docs" / "guides" / "clients.md"
TYPESCRIPT = PROJECT / "clients" / "typescript"
OPENFEATURE = ("@openfeature/server-sdk@1.23.0", "@openfeature/ofrep-provider@0.1.3")
TSC_OPTIONS = ("--module", "nodenext", "--target", "es2022", "--strict", "--skipLibCheck")
PRINTED = ["true", "Adele 412 stale_version", "3", "422 body,idp_user_id", "true"]
PRINTED += ["true true", "true", "true", "membership_not_found"]
"""What both programs print, of Python's in JavaScript's words."""

ASYNCHRONOUS = """
import asyncio, os, uuid
from controlplane import ApiError, Client
from controlplane.api.users import users_get, users_list

async def main():
    client = Client(os.environ["API"], os.environ["OWNER_TOKEN"])
    users = await users_list.asyncio(client=client)
    try:
        await users_get.asyncio(str(uuid.uuid4()), client=client)
    except ApiError as error:
        print(len(users.data), error.code)

asyncio.run(main())
"""


def code(language: str) -> list[str]:
    """The page's blocks of a language."""
    return [block.code for block in blocks(PAGE) if block.language == language]


BUILD_PYTHON, COMMANDS, BUILD_TYPESCRIPT = code("sh")


def run(command: Sequence[str], folder: Path, **environ: str) -> str:
    """What a command prints; it runs in ``folder``."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def with_programs(folder: Path) -> str:
    """The PATH with the programs of ``folder`` first."""
    return f"{folder}:{os.environ['PATH']}"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of what the packages are made from, with the generated files and Python's package."""
    folder: Path = tmp_path_factory.mktemp("checkout")
    unwanted = shutil.ignore_patterns("__pycache__", "node_modules", "generated", "dist")
    for name in ("app", "clients"):
        shutil.copytree(PROJECT / name, folder / name, ignore=unwanted)
    path = with_programs(Path(sys.executable).parent)
    # pip builds with the packages of requirements.txt.
    run(["bash", "-ec", BUILD_PYTHON], folder, PATH=path, PIP_NO_BUILD_ISOLATION="0")
    return folder


@pytest.fixture(scope="module")
def installed(checkout, request, tmp_path_factory) -> Iterator[tuple[Future[Path], Future[Path]]]:
    """Both packages, while they are installed at the same time."""
    _, packages = install_packages(TYPESCRIPT, request.config.cache)
    folders = [tmp_path_factory.mktemp(name) for name in ("venv", "npm")]
    with ThreadPoolExecutor() as pool:
        yield (
            pool.submit(install_python, checkout, folders[0]),
            pool.submit(install_typescript, checkout, packages / "node_modules", folders[1]),
        )


def install_python(checkout: Path, folder: Path) -> Path:
    """The programs of a virtual environment that has the package and nothing of the service."""
    venv.create(folder)
    (wheel,) = checkout.glob("dist/*.whl")
    install = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install"]
    done = subprocess.run(
        [*install, "-q", "--no-compile", f"{wheel}[openfeature]"], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"pip cannot install the packages: {done.stderr.strip()[-300:]}")
    return folder / "bin"


def install_typescript(checkout: Path, modules: Path, folder: Path) -> Path:
    """A folder of npm that has the package, and in ``program.js`` the program of the page."""
    (checkout / "clients" / "typescript" / "node_modules").symlink_to(modules)
    run(["bash", "-ec", BUILD_TYPESCRIPT.replace("npm ci\n", "")], checkout)
    (folder / "package.json").write_text('{"type": "module"}')
    (package,) = checkout.glob("dist/*.tgz")
    run(["npm", "install", "--prefer-offline", "--no-audit", str(package), *OPENFEATURE], folder)
    (folder / "program.ts").write_text("\n".join(code("ts")))
    types = ("--types", "node", "--typeRoots", str(modules / "@types"))
    run([str(modules / ".bin" / "tsc"), *TSC_OPTIONS, *types, "program.ts"], folder)
    return folder


@pytest.fixture(scope="module")
def python(installed, port) -> Path:
    """Its programs; the service starts meanwhile."""
    return installed[0].result()


@pytest.fixture(scope="module")
def node(installed) -> Path:
    """Its folder."""
    return installed[1].result()


@pytest.fixture(scope="module")
def port(app, environment, tmp_path_factory) -> Iterator[int]:
    """The port of the running service."""
    with web_server(environment, tmp_path_factory.mktemp("web"), workers=1) as (port, _):
        yield port


@pytest.fixture
def token(app) -> str:
    """The token of an owner of a tenant with two users and a flag."""
    limits = [limit_flag("api-calls"), limit_flag("emails", policy="soft")]
    create_limits("free", preset_flag("single-sign-on", True), *limits)
    tenant = create_tenant(slug="acme", plan_name="free")
    _, _, token = create_member(tenant, role="owner", email="owner@acme.example")
    create_member(tenant, email="grace@acme.example")
    create_subscription(tenant, bp_subscription_id="sub_1", plan_name="free")
    return token


@pytest.fixture
def usage_key(token) -> str:
    """A key of the tenant that may count what it uses."""
    return create_api_key(row(Tenant, slug="acme"), ["usage:write"])


class TestPrograms:
    """The programs of the page work although answers are lost."""

    @pytest.fixture
    def reached(self, port) -> Iterator[tuple[str, Sent]]:
        with losing_first_answers(port) as reached:
            yield reached

    def check(self, printed: str, sent: Sent) -> None:
        keys = [
            {name.lower(): value for name, value in headers.items()}.get("idempotency-key")
            for method, headers in sent
            if method == "POST"
        ]
        assert printed.splitlines() == PRINTED
        assert keys[:3] == ["signup-ada"] * 3  # the first one was sent twice
        assert keys[3]
        assert [headers.get("X-Consistency") for _, headers in sent[1:3]] == [None, "1/2"]

    def test_in_python(self, python, token, usage_key, reached, tmp_path):
        url, sent = reached
        (tmp_path / "program.py").write_text("\n".join(code("python")))
        environ = {"API": url, "OWNER_TOKEN": token, "USAGE_KEY": usage_key}

        printed = run([str(python / "python"), "program.py"], tmp_path, **environ)

        self.check(
            printed.replace("True", "true").replace("['body', 'idp_user_id']", "body,idp_user_id"),
            sent,
        )

    def test_in_asynchronous_python(self, python, token, reached, tmp_path):
        url, sent = reached
        (tmp_path / "program.py").write_text(ASYNCHRONOUS)

        printed = run([str(python / "python"), "program.py"], tmp_path, API=url, OWNER_TOKEN=token)

        assert printed == "2 user_not_found\n"
        assert [method for method, _ in sent] == ["GET"] * 3  # the first one was sent twice

    def test_in_typescript(self, node, token, usage_key, reached):
        url, sent = reached

        printed = run(["node", "program.js"], node, API=url, OWNER_TOKEN=token, USAGE_KEY=usage_key)

        self.check(printed.replace("[ 'body', 'idp_user_id' ]", "body,idp_user_id"), sent)


@pytest.fixture
def controlplane(python, port, tmp_path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `controlplane` with a superadmin's token."""
    known = {"CONTROLPLANE_URL": f"http://{HOST}:{port}", "CONTROLPLANE_TOKEN": platform_token()}

    def invoke(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(python / "controlplane"), *words],
            cwd=tmp_path,
            env={"PATH": with_programs(python), **known, **environ},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return invoke


class TestControlplane:
    @pytest.mark.parametrize(
        "words",
        [
            "users list --tenant acme --all",
            "flags explain acme single-sign-on",
            "audit list --created-after 14d --created-before 2999-01-31",
        ],
    )
    def test_prints_what_flask_prints(self, app, controlplane, token, words):
        printed = controlplane(*words.split(), "--json")

        expected = app.test_cli_runner().invoke(args=[*words.split(), "--json"])
        assert (printed.returncode, printed.stderr) == (0, expected.stderr.replace("\r", "\n"))
        assert json.loads(printed.stdout) == json.loads(expected.stdout)

    def test_changes_and_prints_a_table(self, controlplane, token):
        printed = controlplane("users", "update", "grace@acme.example", "--first-name", "Grace")

        assert "\nfirst_name\tGrace\n" in printed.stdout

    def test_has_the_rights_of_the_token(self, controlplane, token):
        create_tenant(slug="other")

        own = controlplane("flags", "list", "--tenant", "acme", CONTROLPLANE_TOKEN=token)
        other = controlplane("flags", "list", "--tenant", "other", CONTROLPLANE_TOKEN=token)

        assert own.returncode == 0, own.stderr
        assert (other.returncode, other.stderr) == (
            1,
            "Error: This credential cannot find other: give the tenant's id.\n",
        )

    @pytest.mark.parametrize(
        ("words", "exit_code", "sentence"),
        [
            (
                "users show nobody@acme.example",
                1,
                "There is no user nobody@acme.example; find it with controlplane search.",
            ),
            ("api-keys create --name n", 2, "Missing --permission."),
            ("--url http://127.0.0.1:{free} tenants list", 1, "Connection refused"),
            ("--url http://127.0.0.1:{port}/console users list", 1, "not ready: status 303."),
        ],
    )
    def test_prints_an_error_as_one_sentence(
        self, controlplane, port, token, words, exit_code, sentence
    ):
        refused = controlplane(*words.format(free=free_port(), port=port).split())

        assert (refused.returncode, refused.stdout) == (exit_code, "")
        assert sentence in refused.stderr.splitlines()[-1]

    def test_prints_an_error_as_json(self, controlplane, token):
        refused = controlplane("plans", "show", "gold", "--json")
        unknown = controlplane("tenants", "list", "--json", CONTROLPLANE_TOKEN="sk_unknown")

        assert json.loads(refused.stderr) == {
            "detail": "There is no plan gold; find it with controlplane plans list.",
            "code": "plan_preset_not_found",
        }
        assert json.loads(unknown.stderr) == {"detail": "Not authenticated"}
        assert refused.returncode == unknown.returncode == 1

    def test_needs_a_token_only_to_send(self, controlplane):
        refused = controlplane("tenants", "list", CONTROLPLANE_TOKEN="")

        assert refused.returncode == 2
        assert "Set CONTROLPLANE_TOKEN" in refused.stderr
        assert "Get a user." in controlplane("users", "--help", CONTROLPLANE_TOKEN="").stdout
        assert VERSION in controlplane("--version").stdout

    def test_completes_words(self, controlplane):
        completed = controlplane(
            _CONTROLPLANE_COMPLETE="bash_complete",
            COMP_WORDS="controlplane memberships list --role a",
            COMP_CWORD="4",
        )

        assert completed.stdout == "plain,admin\n"

    def test_runs_the_commands_of_the_page(self, python, port, token, tmp_path):
        api = f"http://{HOST}:{port}"
        words = COMMANDS.replace("ada@example.com", "owner@acme.example")
        environ = {"PATH": with_programs(python), "API": api, "OWNER_TOKEN": token}

        printed = run(["bash", "-ec", words], tmp_path, **environ)

        assert "grace@acme.example" in printed
        assert '"email": "owner@acme.example"' in printed

    def test_is_installed_without_the_service(self, python, tmp_path):
        absent = "all(find_spec(name) is None for name in ('app', 'flask', 'sqlalchemy'))"

        printed = run(
            [
                str(python / "python"),
                "-c",
                f"from importlib.util import find_spec; print({absent})",
            ],
            tmp_path,
        )

        assert printed == "True\n"


class TestPackages:
    def test_of_node_passes_its_own_tests(self, node, checkout):
        run(["npm", "test"], checkout / "clients" / "typescript")

    def test_have_the_version_of_the_service(self):
        package = json.loads((TYPESCRIPT / "package.json").read_text())

        assert package["version"] == VERSION
