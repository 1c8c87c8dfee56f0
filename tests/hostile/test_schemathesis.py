"""schemathesis with every check, as every kind of caller: the short form of ``tests.soak``."""

import pytest

from tests.hostile.document import Document
from tests.hostile.fuzzing import fuzz
from tests.hostile.installation import bound
from tests.hostile.world import create_world

CALLERS = (
    "owner",
    "admin",
    "billing",
    "member",
    "viewer",
    "tenant key",
    "platform key",
    "superadmin",
)
UNLIKE = ("owner", "viewer", "tenant key", "platform key", "superadmin")
"""Those whose answers differ most; the long form asks as all of them."""


@pytest.fixture
def fuzzed(app, service, document):
    with bound(service.app):
        return create_world(service.app, document)


def share(document: Document, caller: str) -> list[str]:
    """A quarter of the operations; the next callers have the others."""
    names = [operation.about["operationId"] for operation in document.operations]
    return names[UNLIKE.index(caller) % 4 :: 4]


class TestEveryOperation:
    @pytest.mark.parametrize("caller", UNLIKE)
    def test_answers_as_documented(self, service, document, fuzzed, caller, figure):
        findings = fuzz(
            service.port,
            document,
            fuzzed.credentials[caller],
            fuzzed.ids,
            examples=3,
            seed=7,
            phases=("examples", "fuzzing"),
            operation_ids=share(document, caller),
        )

        figure(str(findings))
        assert findings.faults == {}
        assert findings.errors == []
        assert findings.cases > 50
        assert findings.statuses[401] < findings.cases / 2
        assert not any(status >= 500 for status in findings.statuses)
