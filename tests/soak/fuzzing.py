"""schemathesis over the whole document with every phase and check, as every kind of caller."""

import multiprocessing
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor

from tests import factories
from tests.hostile.document import Document
from tests.hostile.fuzzing import Findings, fuzz
from tests.hostile.installation import installation
from tests.hostile.world import create_world
from tests.soak.verdict import Verdict

CALLERS = (
    "owner", "admin", "billing", "member", "viewer", "tenant key", "platform key", "superadmin",
)  # fmt: skip
CASES = 20_000
LEAST = 1_000  # as each caller
EXAMPLES = 10  # of each operation, besides the cases that follow from the document
PROCESSES = 2
SLACK = 10  # seconds that the end takes
SETTINGS = {"RATELIMIT_ENABLED": "0", "DB_STATEMENT_TIMEOUT": "10", "LOG_LEVEL": "ERROR"}


def prove(deadline: float) -> Verdict:
    """No server error, and nothing that the document does not say, in so many cases."""
    with installation(**SETTINGS) as service:
        factories.bind(service.app)
        content = Document.of(service.app).content
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(PROCESSES, mp_context=context) as processes:
            runs = {}
            for seed, caller in enumerate(reversed(CALLERS)):
                world = create_world(service.app, Document(content))  # each has rows of its own
                runs[caller] = processes.submit(
                    fuzz,
                    service.port,
                    Document(content),
                    world.credentials[caller],
                    world.ids,
                    examples=EXAMPLES,
                    seed=seed,
                    deadline=deadline - SLACK,
                )
            found = {caller: run.result() for caller, run in runs.items()}
        tracebacks = [line for line in service.logged() if '"exception"' in line]
    return _verdict(found, tracebacks)


def _verdict(found: Mapping[str, Findings], tracebacks: list[str]) -> Verdict:
    cases = {caller: findings.cases for caller, findings in found.items()}
    statuses, beyond = Counter[int](), Counter[str]()
    faults = [f"logged: {line[:500]}" for line in tracebacks]
    for caller, findings in found.items():
        statuses += findings.statuses
        beyond += findings.beyond_schema
        faults += [f"{caller}: {fault}" for fault in findings.errors]
        for title, places in findings.faults.items():
            faults += [f"{caller}: {title}: {place}" for place in places]
    total = sum(cases.values())
    errors = sum(number for status, number in statuses.items() if status >= 500)
    figure = (
        f"{total} cases, {sum(findings.checks for findings in found.values())} checks,"
        f" {errors} server errors, {len(faults)} violations;"
        f" by caller {cases}; answers {dict(sorted(statuses.items()))};"
        f" by rules that no schema says {dict(beyond)}"
    )
    faults += [f"only {few} cases as {caller}" for caller, few in cases.items() if few < LEAST]
    if total < CASES:
        faults.append(f"only {total} of {CASES} cases")
    if errors:
        faults.append(f"{errors} server errors")
    return Verdict(figure, faults)
