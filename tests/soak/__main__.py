"""Run the long proofs, each on private engines of its own, and show the figure of each."""

import argparse
import sys
import time
from collections.abc import Callable

from tests.soak import connections, fuzzing, isolation
from tests.soak.verdict import Verdict

PARTS: dict[str, tuple[Callable[[float], Verdict], float]] = {  # with the seconds that it may take
    "schemathesis": (fuzzing.prove, 300),
    "isolation": (isolation.prove, 190),
    "connections": (connections.prove, 200),
}


def main() -> int:
    """0 where every proof holds."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--part", choices=PARTS, help="only this one")
    chosen = parser.parse_args().part
    failed = 0
    for name, (prove, seconds) in PARTS.items():
        if chosen in (None, name):
            print(f"{name} …", flush=True)
            started = time.monotonic()
            verdict = prove(started + seconds)
            failed += not verdict.holds
            word = "holds" if verdict.holds else "FAILS"
            print(f"{name} {word}: {verdict.figure} [{time.monotonic() - started:.0f} s]")
            for fault in verdict.faults[:20]:
                print(f"  {fault}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
