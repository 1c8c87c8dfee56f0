"""The examples of the documentation, run page by page against one running `flask dev`."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dev.engines.test_sharing import temporary_folder
from tests.dev.running import READY_SECONDS, environment, running_dev
from tests.docs.pages import PAGES, PROJECT, Block, blocks, name_of
from tests.npm import install_packages
from tests.ports import free_port
from tests.running.serving import program

RUN_ELSEWHERE = {
    "python3 -m venv": "this test runs `flask dev`",
    ".venv/bin/python -m pytest": "runs this test",
    "PGOPTIONS=": "tests/running/test_backup.py",
    "pg_restore": "tests/running/test_backup.py",
    "pg_basebackup": "tests/running/test_backup.py",
    "PGDATA=": "tests/running/test_backup.py",
    "flagd start": "tests/flags/test_flagd.py",
}
"""Beginnings of blocks, and what runs them instead."""
CLIENTS = PROJECT / "docs" / "guides" / "clients.md"  # tests/clients runs it


def examples(page: Path) -> list[Block]:
    """The blocks of a page that are run."""
    return [
        block
        for block in blocks(page)
        if block.language in {"sh", "python", "ts"}
        and not block.code.startswith(tuple(RUN_ELSEWHERE))
    ]


@pytest.fixture(scope="module")
def checkout() -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder like one in which `flask dev` runs, and the environment of a second terminal."""
    for name in ("bash", "curl", "openssl"):
        program(name)
    with temporary_folder() as folder:
        port = free_port()
        with running_dev(folder, port, "--quiet") as dev:
            work = folder.parent / "checkout"
            work.mkdir()
            work.joinpath("instance").symlink_to(folder)
            work.joinpath(".curlrc").write_text("fail-with-body\n")
            yield (
                work,
                {
                    **environment(folder),
                    **dev.variables,
                    "API_KEY": dev.variables["PLATFORM_TOKEN"],
                    "CURL_HOME": str(work),
                    "FLASK_APP": str(PROJECT / "wsgi.py"),
                    "FLASK_SEED_PORT": str(port),
                    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                },
            )


def script(page: Path, work: Path, packages: Path | None) -> str:
    """One script of all blocks of a page, which say their place on standard error."""
    parts = []
    for number, block in enumerate(examples(page)):
        parts.append(f"echo '# {block.place}' >&2")
        if block.language == "sh":
            parts.append(block.code)
            continue
        suffix, folder = ("py", work) if block.language == "python" else ("mjs", packages)
        file = Path(folder, f"{page.stem}-{number}.{suffix}")
        file.write_text(block.code)
        parts.append(f"{'python' if suffix == 'py' else 'node'} {file}")
    return "\n".join(parts)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if examples(page) and page != CLIENTS], ids=name_of
)
def test_the_examples_of_a_page_run(checkout, page, tmp_path, request):
    work, environ = checkout
    packages = None
    if any(block.language == "ts" for block in examples(page)):
        _, installed = install_packages(PROJECT / "tests", request.config.cache)
        packages = tmp_path / "packages"
        packages.mkdir()
        packages.joinpath("node_modules").symlink_to(installed / "node_modules")
    command = ["bash", "-euo", "pipefail", "-c", script(page, work, packages)]

    done = subprocess.run(
        command, cwd=work, env=environ, capture_output=True, text=True, timeout=READY_SECONDS
    )

    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
