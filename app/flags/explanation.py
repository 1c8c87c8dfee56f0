"""Why a flag of a tenant has its value."""

from __future__ import annotations

from uuid import UUID

from app.core.errors import NotFound
from app.core.json_text import Json
from app.flags.evaluation import EffectiveFlag, FlagSet, Layer, evaluate


def explain(tenant_id: UUID, flag_key: str) -> dict[str, Json]:
    """The explanation; raises NotFound for an unknown tenant and a flag that its plan lacks."""
    found = evaluate(tenant_id, flag_key)
    if flag_key not in found.flags:
        raise NotFound
    return explanation_of(tenant_id, found, found.flags[flag_key])


def explanation_of(tenant_id: UUID, found: FlagSet, flag: EffectiveFlag) -> dict[str, Json]:
    """A flag's value, what could have decided it, and what did; see FlagExplanationSchema."""
    return {
        "tenant_id": tenant_id,
        "is_suspended": flag.layer is Layer.TENANT_SUSPENDED,
        "plan_name": found.plan_name,
        "flag_key": flag.key,
        "flag_type": flag.type,
        "value": flag.value,
        "decided_by": flag.layer,
        "because": _because(flag),
        "preset_value": flag.preset_value,
        "is_locked": flag.is_locked,
        "override_id": flag.override_id,
        "override_value": flag.override_value,
        "expires_at": flag.expires_at,
    }


def _because(flag: EffectiveFlag) -> str:
    match flag.layer:
        case Layer.TENANT_SUSPENDED:
            return "The tenant is suspended, so its flags are disabled and have the plan's values."
        case Layer.OVERRIDE:
            return "The tenant's override takes precedence over the plan's preset."
        case Layer.OVERRIDE_EXPIRED:
            return "The tenant's override has expired, so the plan's preset applies."
        case Layer.OVERRIDE_OF_WRONG_TYPE:
            return f"The tenant's override is not a {flag.type}, so the plan's preset applies."
        case Layer.PRESET:
            return "The tenant has no override, so the plan's preset applies."
