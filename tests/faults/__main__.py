"""Run one of the long proofs on private engines of its own: ``python -m tests.faults index``."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from importlib import import_module
from pathlib import Path

import flask_migrate

from app import create_app
from app.dev.engines.sharing import engines
from app.dev.environment import development_environment
from tests import factories
from tests.conftest import TEST_SETTINGS

PROOFS = [
    path.stem
    for path in sorted(Path(__file__).parent.glob("*.py"))
    if not path.stem.startswith("_")
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("proof", choices=[name for name in PROOFS if not name.startswith("test_")])
    parser.add_argument("--seconds", type=float, help="how long `processes` kills; 120 if unset")
    chosen = parser.parse_args()
    if chosen.seconds is not None and chosen.proof != "processes":
        parser.error("--seconds is an option of `processes` alone")
    options = {} if chosen.seconds is None else {"seconds": chosen.seconds}
    proof = import_module(f"tests.faults.{chosen.proof}")
    folder = Path(tempfile.mkdtemp(prefix="controlplane-faults-"))
    folder.chmod(0o755)  # the engines' account must get in where root runs this
    with engines(folder):
        environment = {
            **development_environment({"INSTANCE_DIR": str(folder)}),
            **TEST_SETTINGS,
        }
        app = create_app(environment)
        factories.bind(app)
        with app.app_context():
            flask_migrate.upgrade()
        print(proof.prove(app, environment, **options))  # noqa: T201 - its result
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
