"""Write what the clients are built from: ``python -m clients.generate [FOLDER]``.

That is ``openapi.json``, the OpenAPI document without the answers that are errors, because both
clients raise errors; and below ``python/generated`` the functions and types of that document. It
needs what ``requirements.txt`` names.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from app import create_app
from app.dev.reference.__main__ import SETTINGS

GENERATOR = """
post_hooks: []
content_type_overrides:
  application/x-ndjson: application/octet-stream
  text/plain: application/octet-stream
"""


def document() -> dict[str, Any]:
    """The OpenAPI document, without the answers that are errors."""
    app = create_app(SETTINGS, with_commands=False, quiet=True)
    found: dict[str, Any] = app.test_client().get("/openapi.json").get_json()
    for operations in found["paths"].values():
        for name, operation in operations.items():
            if name != "parameters":
                answers = operation["responses"].items()
                operation["responses"] = {
                    status: one for status, one in answers if status.startswith(("2", "3"))
                }
    return found


def main(folder: Path) -> None:
    """Write the files below ``folder``."""
    (folder / "openapi.json").write_text(json.dumps(document(), ensure_ascii=False))
    generate(folder)


def generate(folder: Path) -> None:
    """Write the functions and types of ``openapi.json`` in ``folder``."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as settings:
        settings.write(GENERATOR)
        settings.flush()
        command = [
            *(sys.executable, "-m", "openapi_python_client", "generate", "--fail-on-warning"),
            *("--path", str(folder / "openapi.json"), "--output-path"),
            *(str(folder / "python" / "generated"), "--config", settings.name),
            *("--meta", "none", "--overwrite"),
        ]
        subprocess.run(command, check=True)  # noqa: S603 - no input from outside


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
