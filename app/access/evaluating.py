"""Answers questions about access, and counts what they consume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from uuid import UUID

from app.access.facts import TenantFacts, find_facts
from app.access.judging import Verdict, decide
from app.access.questions import Question
from app.access.steps import StepName, failed
from app.auth.guard import TenantSuspended
from app.core.actors import Actor
from app.core.db.transactions import current_transaction
from app.core.errors import AppError, Invalid, NotFound
from app.usage.service import Request, consume_all


class Semantic(StrEnum):
    """Which questions of several are answered: all, or those up to the first no or yes."""

    EXECUTE_ALL = "execute_all"
    DENY_ON_FIRST_DENY = "deny_on_first_deny"
    PERMIT_ON_FIRST_PERMIT = "permit_on_first_permit"


def evaluate(
    questions: Sequence[Question | Verdict],
    *,
    actor: Actor,
    semantic: Semantic = Semantic.EXECUTE_ALL,
    home: UUID | None = None,
) -> list[Verdict]:
    """The verdicts, in the order of the questions; with some semantics not all are answered.

    A verdict in place of a question stands. What a yes consumes is counted before the next question
    is decided; if it does not fit, the verdict is a no. ``home`` is the tenant of questions that
    name none.
    """
    asked = [one for one in questions if isinstance(one, Question)]
    facts = iter(find_facts(asked, home) if asked else ())
    verdicts: list[Verdict] = []
    for question in questions:
        if isinstance(question, Verdict):
            verdict = question
        else:
            verdict = _answer(question, next(facts), actor)
        verdicts.append(verdict)
        if semantic is (
            Semantic.DENY_ON_FIRST_DENY if verdict.refusal else Semantic.PERMIT_ON_FIRST_PERMIT
        ):
            break
    return verdicts


def _answer(question: Question, facts: TenantFacts | None, actor: Actor) -> Verdict:
    verdict = decide(facts, question)
    if question.consume is None or facts is None or verdict.refusal is not None:
        return verdict
    consumed = Request(**question.consume)
    current_transaction().is_confirming = True
    try:
        (decision,) = consume_all(facts.tenant.id, [consumed], actor=actor)
    except (Invalid, NotFound, TenantSuspended) as fault:
        return _refused(verdict, _sentence(fault), "consume_refused")
    usage = decision.as_answer()
    if not decision.allowed:
        found = f"The amount exceeds what is left of the limit {consumed.feature}."
        return replace(_refused(verdict, found, "limit_reached"), usage=usage)
    facts.limits[consumed.feature] = decision.usage.remaining != 0 or "over_by" in usage
    return replace(verdict, usage=usage)


def _refused(verdict: Verdict, found: str, code: str) -> Verdict:
    step = failed(StepName.LIMIT, found, "Raise the limit, or consume less.", code=code)
    kept = [one for one in verdict.steps if one.step is not StepName.LIMIT]
    return Verdict([*kept, step])


def _sentence(fault: AppError) -> str:
    return str(fault.errors[0]["msg"]) if isinstance(fault, Invalid) else fault.detail
