"""Run one of the long proofs on private engines of its own: ``python -m tests.faults index``."""

import argparse
import ast
from importlib import import_module
from pathlib import Path
from textwrap import fill

from tests.faults._engines import private_engines

PROOFS = [
    path.stem
    for path in sorted(Path(__file__).parent.glob("*.py"))
    if not path.stem.startswith(("_", "test_"))
]


def statements() -> str:
    """Each proof with the statement that it proves, its module's docstring."""
    found = []
    for name in PROOFS:
        text = ast.get_docstring(ast.parse(Path(__file__).with_name(f"{name}.py").read_text()))
        found.append(fill(f"{name}: {text}", subsequent_indent="    "))
    return "\n".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults",
        description=__doc__,
        epilog=statements(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("proof", choices=PROOFS)
    parser.add_argument("--seconds", type=float, help="how long `processes` kills; 120 if unset")
    chosen = parser.parse_args()
    if chosen.seconds is not None and chosen.proof != "processes":
        parser.error("--seconds is an option of `processes` alone")
    options = {} if chosen.seconds is None else {"seconds": chosen.seconds}
    proof = import_module(f"tests.faults.{chosen.proof}")
    with private_engines() as found:
        print(proof.prove(found.app, found.environment, **options))  # noqa: T201 - its result


if __name__ == "__main__":
    main()
