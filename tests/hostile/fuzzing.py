"""schemathesis over the whole document, as one caller, against a running server."""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import UUID

import schemathesis
from pydantic import AwareDatetime, TypeAdapter, ValidationError
from schemathesis.core import NotSet
from schemathesis.core.failures import AcceptedNegativeData, Failure
from schemathesis.engine import Status, events, from_schema
from schemathesis.openapi.checks import RejectedPositiveData
from schemathesis.transport.serialization import Binary

from tests.hostile.document import Document

PHASES = ("examples", "coverage", "fuzzing", "stateful")
PRECONDITION = "If-Match"
KEY = "Idempotency-Key"

KINDS = {
    "boolean": TypeAdapter(bool),
    "integer": TypeAdapter(int),
    "date-time": TypeAdapter(AwareDatetime),
    "uuid": TypeAdapter(UUID),
}

_numbers = count(1)


@dataclass
class Findings:
    """How many requests were judged, and what was found, by its title."""

    cases: int = 0
    checks: int = 0
    faults: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    beyond_schema: Counter[str] = field(default_factory=Counter)
    seconds: float = 0

    def __str__(self) -> str:
        found = ", ".join(f"{len(places)} x {title}" for title, places in self.faults.items())
        return (
            f"{self.cases} cases, {self.checks} checks, {self.seconds:.0f} s, answers "
            f"{dict(sorted(self.statuses.items()))}, found: {found or 'nothing'}"
        )

    def note(self, recorder: Any) -> None:
        self.cases += len(recorder.interactions)
        for interaction in recorder.interactions.values():
            if interaction.response is not None:
                self.statuses[interaction.response.status_code] += 1
        for case_id, checks in recorder.checks.items():
            self.checks += len(checks)
            for check in checks:
                if check.status is Status.FAILURE:
                    failure = check.failure_info.failure
                    self.faults[failure.title].append(_described(recorder, case_id, failure))


def fuzz(
    port: int,
    document: Document,
    token: str,
    ids: Mapping[str, str],
    *,
    examples: int,
    seed: int,
    phases: tuple[str, ...] = PHASES,
    operation_ids: Sequence[str] = (),
    deadline: float = float("inf"),
) -> Findings:
    """Run the phases with every check; ``examples`` cases of each operation in the fuzzing phase.

    Most ids are ``ids``, of rows that exist, or nearly everything would be 404. ``operation_ids``
    leave the others out. What is not asked until ``deadline`` (monotonic) is not asked.
    """
    findings, started = Findings(), time.monotonic()
    config = schemathesis.Config.from_dict(_settings(token, examples, seed, phases))
    url = f"http://127.0.0.1:{port}/openapi.json"
    schema = schemathesis.openapi.from_url(url, config=config)
    if operation_ids:
        schema = schema.include(operation_id=list(operation_ids))
    schema.hook("map_path_parameters")(_with_ids(ids))
    schema.hook("filter_failure")(_filter(findings, document))
    stream = from_schema(schema).execute()
    for event in stream:
        if time.monotonic() > deadline:
            stream.stop()
        match event:
            case events.ScenarioFinished():
                findings.note(event.recorder)
            case events.NonFatalError() | events.FatalError():
                findings.errors.append(repr(event))
    findings.seconds = time.monotonic() - started
    return findings


def _settings(token: str, examples: int, seed: int, phases: tuple[str, ...]) -> dict[str, Any]:
    return {
        "seed": seed,
        "headers": {"Authorization": f"Bearer {token}"},
        "continue-on-failure": True,
        "request-timeout": 60,
        "generation": {
            "max-examples": examples,
            "database": "none",
            "no-shrink": True,
            "allow-x00": False,  # no JSON Schema says that PostgreSQL holds no U+0000
        },
        "phases": {phase: {"enabled": phase in phases} for phase in PHASES},
    }


@schemathesis.hook("before_call")
def make_reachable(_: Any, case: Any, kwargs: Any) -> None:
    """Most requests name no version, and none the idempotency key of another one."""
    headers = case.headers or {}
    if isinstance(headers.get(KEY), str) and 0 < len(headers[KEY]) < 200:
        headers[KEY] = f"{headers[KEY]}-{next(_numbers)}"
    if PRECONDITION in headers and next(_numbers) % 8:
        del headers[PRECONDITION]


@schemathesis.serializer("application/x-ndjson", "text/plain", "application/octet-stream")
def as_bytes(_: Any, value: Any) -> bytes:
    """JSON Lines are any bytes: each line that is none is reported, not refused."""
    return value.data if isinstance(value, Binary) else str(value).encode()


def _with_ids(ids: Mapping[str, str]) -> Callable[..., dict[str, Any]]:
    def replace(_: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
        if path_parameters is None:
            return None
        made_up = str(path_parameters).encode(errors="replace")
        if sum(made_up) % 4 == 0 and "key_id" not in path_parameters:  # nobody revokes themselves
            return path_parameters
        return {name: ids.get(name, value) for name, value in path_parameters.items()}

    return replace


def _filter(findings: Findings, document: Document) -> Callable[..., bool]:
    """Drop, and count, what no JSON Schema can say; see :func:`rule_beyond_schema`."""

    def keep(_: Any, failure: Failure, case: Any, response: Any) -> bool:
        rule = rule_beyond_schema(failure, case, response, document)
        if rule is not None:
            findings.beyond_schema[rule] += 1
        return rule is None

    return keep


def rule_beyond_schema(
    failure: Failure, case: Any, response: Any, document: Document
) -> str | None:
    """The rule by which a request that fits the schema is refused, or one that does not is taken.

    Refused: for a version that is not current, and by rules between fields or with stored rows.
    Taken: what FastAPI reads leniently, judged by pydantic itself (``"yes"`` for true).
    """
    if isinstance(failure, RejectedPositiveData):
        if response.status_code == 412:
            return "the version named is not current"
        if response.status_code == 422 or response.content.startswith(b'{"detail":['):
            answer = json.loads(response.content)
            if "errorDetails" in answer:  # OFREP's form
                return "a rule of Idempotency-Key, OFREP's only 422"
            if answer["detail"] and all(_is_rule(entry) for entry in answer["detail"]):
                return "a rule between fields or rows"
        if response.status_code == 400 and b"INVALID_CONTEXT" in response.content:
            return "OFREP needs a tenant that exists"
    if isinstance(failure, AcceptedNegativeData) and _is_lenient(case, document):
        return "a spelling that FastAPI reads as well"
    return None


FIELDS_OF_ONE = [["body", name] for name in ("feature", "amount", "at", "idempotency_key")]


def _is_rule(entry: Mapping[str, Any]) -> bool:
    loc = entry["loc"]
    if (entry["type"], entry["loc"]) == ("string_pattern_mismatch", ["body", "slug"]):
        return True  # a stored slug of another form passes unchanged, so PATCH has no pattern
    if loc == ["header", "x-source-timestamp"]:
        return True  # it is documented as text, which generated clients can send
    if entry["type"] in ("value_error", "idempotency_key_reused"):
        return True
    if len(loc) > 2 and loc[1] in ("meta_data", "patches", "values", "config"):
        return True  # the tenant's custom fields, and the settings of a kind of log stream
    if loc[-1] in ("flag_value", "default_value"):
        own_types = ("bool_type", "string_type", "float_type", "int_type")
        return entry["type"] in own_types  # the flag's own type
    if loc[-1] == "metering" or loc in FIELDS_OF_ONE:
        return entry["type"] in ("missing", "extra_forbidden")  # of a limit; one without `entries`
    if loc in (["query", "tenant_id"], ["body", "tenant_id"]):
        return entry["type"] == "missing"  # of a credential without an organization
    is_unchanged = loc[-1] in ("id", "created_at", "updated_at")
    return is_unchanged and entry["type"] == "extra_forbidden"  # what was read may be sent back


def _is_lenient(case: Any, document: Document) -> bool:
    """Whether the request fits the schema once each value is read as pydantic reads it."""
    operation = document.operation(case.method.lower(), case.path)
    assert operation is not None
    for place, sent in (("query", case.query), ("header", case.headers)):
        for name, schema in operation.named(place).items():
            if name in (sent or {}) and not document.fits(leniently(sent[name], schema), schema):
                return False
    if not operation.schema or isinstance(case.body, NotSet):
        return True
    return document.fits(leniently(case.body, operation.schema, document), operation.schema)


def leniently(value: Any, schema: Mapping[str, Any], document: Document | None = None) -> Any:
    """``value`` with what pydantic reads as another type turned into that type's JSON."""
    schema = document.resolved(schema) if document else schema
    if isinstance(value, dict):
        parts = schema.get("properties", {})
        return {
            name: leniently(item, parts[name], document) if name in parts else item
            for name, item in value.items()
        }
    if isinstance(value, list) and "items" in schema:
        return [leniently(item, schema["items"], document) for item in value]
    kind = KINDS.get(schema.get("format")) or KINDS.get(_type_of(schema))
    try:
        return value if kind is None else kind.dump_python(kind.validate_python(value), mode="json")
    except ValidationError:
        return value


def _type_of(schema: Mapping[str, Any]) -> str | None:
    """The one type that there is besides null."""
    types = schema.get("type")
    others = [kind for kind in types if kind != "null"] if isinstance(types, list) else [types]
    return others[0] if len(others) == 1 else None


def _described(recorder: Any, case_id: str, failure: Any) -> str:
    interaction = recorder.interactions.get(case_id)
    case = recorder.cases[case_id].value
    answer = interaction.response if interaction else None
    content = answer.content[:300] if answer is not None else b""
    return (
        f"{case.method} {case.formatted_path} {case.query} {_shown(case.headers)} {case.body!r:.300}"
        f" {failure.message[:300]} -> {answer.status_code if answer else None} {content!r}"
    )


def _shown(headers: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (headers or {}).items() if name != "Authorization"}
