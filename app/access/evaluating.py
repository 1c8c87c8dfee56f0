"""Answers questions about access, and counts what they consume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from app.access.facts import TenantFacts, find_facts
from app.access.judging import decide
from app.access.questions import Question
from app.access.steps import Outcome, Step, StepName, failed
from app.auth.guard import TenantSuspended
from app.core.actors import Actor
from app.core.db.transactions import current_transaction
from app.core.errors import Invalid, NotFound
from app.core.json_text import Json
from app.usage.service import Request, consume_all


class Semantic(StrEnum):
    """Which questions of several are answered: all, or those up to the first no or yes."""

    EXECUTE_ALL = "execute_all"
    DENY_ON_FIRST_DENY = "deny_on_first_deny"
    PERMIT_ON_FIRST_PERMIT = "permit_on_first_permit"


class Verdict(NamedTuple):
    """An answer: the first step that ``refused``, or None. ``usage`` is that of a limit to consume."""

    refused: Step | None
    usage: Mapping[str, Json] | None = None


def evaluate(
    questions: Sequence[Question | Verdict], semantic: Semantic, actor: Actor, home: UUID | None
) -> list[Verdict]:
    """The verdicts, in the order of the questions; with some semantics not all are answered.

    A verdict in place of a question stands. What a yes consumes is counted before the next question
    is decided; if it does not fit, the verdict is a no. ``home``: see :func:`find_facts`.
    """
    facts = iter(find_facts([one for one in questions if isinstance(one, Question)], home))
    left: dict[tuple[UUID, str], bool] = {}
    verdicts: list[Verdict] = []
    for one in questions:
        verdict = _answer(one, next(facts), actor, left) if isinstance(one, Question) else one
        verdicts.append(verdict)
        ending = Semantic.DENY_ON_FIRST_DENY if verdict.refused else Semantic.PERMIT_ON_FIRST_PERMIT
        if semantic is ending:
            break
    return verdicts


def refusal_of(facts: TenantFacts | None, question: Question) -> Step | None:
    """The first step that refuses; None: the answer is yes."""
    steps = decide(facts, question)
    return next((step for step in steps if step.outcome is Outcome.FAILED), None)


def _answer(
    question: Question, facts: TenantFacts | None, actor: Actor, left: dict[tuple[UUID, str], bool]
) -> Verdict:
    """``left`` says what is left of the limits that the answers before have counted."""
    if facts is not None:
        facts.limits.update((key, left[id_, key]) for id_, key in left if id_ == facts.tenant_id)
    refused, consumed = refusal_of(facts, question), question.context.get("consume")
    if consumed is None or facts is None or refused is not None:
        return Verdict(refused)
    request = Request(**consumed)
    current_transaction().is_confirming = True
    try:
        (decision,) = consume_all(facts.tenant_id, [request], actor=actor)
    except (Invalid, NotFound, TenantSuspended) as fault:
        found = fault.errors[0]["msg"] if isinstance(fault, Invalid) else fault.detail
        return Verdict(failed(StepName.LIMIT, found, "", code="consume_refused"))
    usage = decision.as_answer()
    if decision.allowed:
        left[facts.tenant_id, request.feature] = decision.usage.remaining != 0 or "over_by" in usage
        return Verdict(None, usage)
    found = f"The amount exceeds what is left of the limit {request.feature}."
    return Verdict(failed(StepName.LIMIT, found, "", code="limit_reached"), usage)
