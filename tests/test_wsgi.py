"""wsgi.py as commands and gunicorn load it, in processes of their own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from app import create_app

PROJECT = Path(__file__).parent.parent
FLASK = "flask --app wsgi"


def run(command: str, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program of the virtual environment in the project's folder."""
    return subprocess.run(
        [sys.executable, "-m", *command.split()],
        cwd=PROJECT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=60,
    )


class TestCommands:
    @pytest.mark.parametrize("words", ["tenants list --json", "db upgrade"])
    def test_print_nothing_but_their_result(self, app, environment, words):
        with_hints = {**environment, "LOG_LEVEL": "INFO", "EMAIL_WEBHOOK_SECRETS": ""}

        ended = run(f"{FLASK} {words}", with_hints)

        assert (ended.returncode, ended.stderr) == (0, "")


class TestWrongConfiguration:
    @pytest.mark.parametrize("command", ["gunicorn wsgi:app --bind=127.0.0.1:0", f"{FLASK} --help"])
    def test_is_one_message(self, environment, command):
        wrong = {
            "DATABASE_URL": "mysql://db",
            "DB_POOL_SIZE": "many",
            "LOG_LEVEL": "loud",
            "WEB_PROCESSES": "none",
        }

        ended = run(command, {**environment, **wrong})

        assert ended.returncode != 0
        assert ended.stderr == (
            "Error: The configuration is not usable: DATABASE_URL must be a postgresql:// URL;"
            " DB_POOL_SIZE must be a number, not 'many';"
            " WEB_PROCESSES must be a number, not 'none';"
            " LOG_LEVEL must be one of DEBUG, INFO, WARNING, ERROR.\n"
        )

    def test_of_the_folder_of_counters_is_one_message(self, app, environment, tmp_path):
        file = tmp_path / "file"
        file.touch()
        wrong = {**environment, "PROMETHEUS_MULTIPROC_DIR": str(file)}

        ended = run("gunicorn wsgi:app --bind=127.0.0.1:0", wrong)

        assert ended.returncode == 1
        assert ended.stderr.startswith("Error: PROMETHEUS_MULTIPROC_DIR is not usable: ")
        assert ended.stderr.count("\n") == 1
        assert file.exists()

    @pytest.mark.parametrize(
        ("command", "settings", "message"),
        [
            ("db upgrade", {"MIGRATION_DATABASE_URL": "postgresql:///x?host=/nowhere"}, "Postgre"),
            ("tenants list", {"DATABASE_URL": "postgresql:///x?host=/nowhere"}, "The database"),
            ("jobs worker", {"REDIS_URL": "unix:///nowhere/redis.sock"}, "Redis"),
        ],
    )
    def test_of_an_address_is_one_message(self, app, environment, command, settings, message):
        ended = create_app({**environment, **settings}).test_cli_runner().invoke(args=command)

        assert ended.exit_code == 1
        assert ended.stderr.startswith(f"Error: {message}")
        assert ended.stderr.count("\n") == 1
