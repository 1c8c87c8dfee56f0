"""List every statement with its plan, as Markdown: ``python -m tests.query_plans --tenants 10000``."""

import argparse

from tests.query_plans.collecting import USERS_PER_TENANT, collect


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.query_plans", description=__doc__)
    parser.add_argument(
        "--tenants", type=int, default=2000, help=f"with {USERS_PER_TENANT} users each"
    )
    for statement in sorted(collect(parser.parse_args().tenants), key=lambda one: one.text):
        print(f"- `{statement.text}`\n  - {statement.shape}")


if __name__ == "__main__":
    main()
