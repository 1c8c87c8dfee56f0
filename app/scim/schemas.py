"""The answer of a trial of a connection."""

from __future__ import annotations

from enum import StrEnum

from app.core.validation.fields import Bool, Choice, ListOf, Nested, Str
from app.core.validation.schemas import AnswerSchema


class StepResult(StrEnum):
    """What came of a step of a trial."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"  # an earlier one failed


class ScimTestStepSchema(AnswerSchema):
    """One step of a trial."""

    examples = {"step": "A user is created", "result": "ok", "detail": ""}

    step = Str(description="What a directory does.")
    result = Choice(StepResult, description="`skipped` after a step that has failed.")
    detail = Str(description="Why the step has failed.")


class ScimTestSchema(AnswerSchema):
    """What came of a trial."""

    has_passed = Bool(description="Whether all steps are `ok`.")
    steps = ListOf(Nested(ScimTestStepSchema), description="The steps, in their order.")
