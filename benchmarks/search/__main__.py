"""``python -m benchmarks.search``: load, build, search, grow tenfold, search again, patch."""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import closing
from pathlib import Path

from flask import Flask

from app import create_app
from app.core.db import tenancy
from app.core.db.transactions import transaction
from app.custom_fields import service as custom_fields
from app.custom_fields.search_index import builder, checker
from app.dev.engines.instance import Instance
from app.dev.engines.sharing import engines
from app.dev.environment import development_environment
from benchmarks.dataset import row_id
from benchmarks.search import data, report, searches, writes
from benchmarks.stage import PROJECT, connect, flask

BUILT = 20  # tenants whose indexes the service itself builds
SEARCHED = 7  # the tenant that is searched, before and after the others grow


def main() -> None:
    arguments = parse()
    with tempfile.TemporaryDirectory(prefix="benchmarks-search-") as folder:
        Path(folder).chmod(0o755)  # the engines' account must get in where root runs this
        with engines(folder):
            text = run(Instance.at(folder), arguments.tenants, arguments.users)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(text)
    print(text)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument(
        "--tenants", type=int, default=1_000, help="in the end, at least 200; a tenth at first"
    )
    parser.add_argument("--users", type=int, default=1_000, help="per tenant")
    parser.add_argument(
        "--output", type=Path, default=PROJECT / "benchmarks" / "results" / "search.md"
    )
    arguments = parser.parse_args()
    if arguments.tenants < 10 * BUILT:
        parser.error(f"--tenants: at least {10 * BUILT}, a tenth of which is {BUILT}")
    return arguments


def run(instance: Instance, tenants: int, users: int) -> str:
    """Everything, on engines that are empty so far; the report as Markdown."""
    started = time.monotonic()
    environment = {
        **development_environment({"INSTANCE_DIR": str(instance.folder)}),
        "LOG_LEVEL": "WARNING",
    }
    flask(environment, "db", "upgrade")
    app = create_app(environment)
    with closing(connect(instance)) as session:
        say(f"loading {tenants // 10} tenants")
        data.load(session, range(BUILT), users_per_tenant=users, indexed=False)
        data.load(session, range(BUILT, tenants // 10), users_per_tenant=users, indexed=True)
        say(f"building the indexes of {BUILT} tenants")
        built = build_indexes(app, users)
        data.analyze(session)
        say("searching")
        before = searches.measure(app, tenant=SEARCHED, users_per_tenant=users)
        say(f"loading tenants up to {tenants}")
        loading = time.monotonic()
        data.load(session, range(tenants // 10, tenants), users_per_tenant=users, indexed=True)
        loaded = time.monotonic() - loading
        data.analyze(session)
        say("searching")
        after = searches.measure(app, tenant=SEARCHED, users_per_tenant=users)
        sizes = report.sizes(session)
    say("patching")
    costs = writes.measure(app)
    wrong = check(app, tenants)
    return report.text(
        report.Results(tenants, users, built, loaded, before, after, sizes, costs, wrong),
        seconds=time.monotonic() - started,
    )


def build_indexes(app: Flask, users: int) -> report.Build:
    """What the index worker does, one field after the other."""
    started = time.monotonic()
    with app.app_context():
        for tenant in range(BUILT):
            for place in range(len(data.FIELDS)):
                for _ in builder.work(row_id(data.TENANT, tenant), data.field_id(tenant, place)):
                    pass
    return report.Build(BUILT * len(data.FIELDS) * users, time.monotonic() - started)


def check(app: Flask, tenants: int) -> int:
    """How many entities' rows are not what the service would write, in a built and a loaded tenant."""
    wrong = 0
    with app.app_context():
        for tenant in (SEARCHED, tenants - 1):
            with transaction():
                tenancy.enter(tenancy.PLATFORM)
                fields = custom_fields.active_fields(row_id(data.TENANT, tenant), "user")
            for field in fields:
                *_, found = checker.check(field, repair=False)
                wrong += found.wrong
    return wrong


def say(words: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {words}", flush=True)


if __name__ == "__main__":
    main()
