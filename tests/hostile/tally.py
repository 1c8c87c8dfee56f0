"""Counting requests and what was wrong with their answers."""

from tests.hostile.document import Operation
from tests.hostile.wire import Answer


class Tally:
    """How many requests were sent, and each fault of their answers."""

    def __init__(self) -> None:
        self.sent = 0
        self.faults: list[str] = []

    def note(self, where: str, faults: list[str]) -> None:
        self.sent += 1
        self.faults += [f"{where}: {fault}" for fault in faults]


def judged(operation: Operation, answer: Answer, expected: int | None) -> list[str]:
    """The document's faults with an answer, and a status other than the expected one.

    A web process answers 421 for a stream of the stream process, whatever is expected.
    """
    faults = operation.faults(answer)
    is_elsewhere = operation.is_stream and answer.status == 421
    if not (faults or is_elsewhere) and expected is not None and answer.status != expected:
        faults.append(f"{answer.status} instead of {expected}: {answer.data[:200]!r}")
    return faults
