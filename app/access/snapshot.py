"""All that the decisions of one tenant need, for programs that decide in memory.

A snapshot has the rules of required flags in place of their values, because rules compare the
question. It has no more of the metadata and attributes than these rules compare.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from app.audit.outbox import ALL_TYPES
from app.auth.permissions import TENANT
from app.config import current_config
from app.core.db.statements import Statement
from app.core.errors import Conflict, NotFound
from app.core.json_text import Json
from app.flags.evaluation import FINGERPRINT_COLUMN, FROM_PLANS, EffectiveFlag, Layer, evaluate_all
from app.flags.rules import rollout_of
from app.plans.flag_types import FlagType
from app.plans.rule_conditions import comparisons

FORMAT = 1  # increase it in a release that answers differently for the same rows
MAX_ROWS = 100_000
STREAM = "/v1/access/events"
KINDS = ("api_key.", "membership.", "resource.", "role_assignment.", "user.")
TYPES = sorted(one for one in ALL_TYPES if one.startswith(KINDS))

FINGERPRINTS = Statement(
    "access.fingerprints",
    f"""
    SELECT tenant_id, md5(concat_ws('|', {FORMAT}, fingerprint, access_version(tenant_id, :types)))
        AS fingerprint
    FROM (
        SELECT plan.tenant_id, {FINGERPRINT_COLUMN} {FROM_PLANS}
        WHERE plan.tenant_id = ANY (CAST(:tenant_ids AS uuid[]))
    ) flags
    """,  # noqa: S608 - no input
    prepare=False,
)
FIND_BASICS = Statement(
    "access.find_basics", "SELECT * FROM snapshot_basics(:tenant_id, CAST(:service AS text[]))"
)
LIST_ROWS = Statement(
    "access.list_snapshot_rows",
    "SELECT * FROM snapshot_rows(:tenant_id, CAST(:user_names AS text[]),"
    " CAST(:resource_names AS text[]), :bound)",
    as_json=True,
)


class SnapshotTooLarge(Conflict):
    code = "access_snapshot_too_large"
    detail = (
        f"The tenant has more than {MAX_ROWS} users, keys, members of groups, resources and"
        " assignments in total, of which each 1,000 bytes that rules compare count one more. Ask"
        " POST /access/v1/evaluations."
    )


def fingerprints(tenant_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Texts that differ where snapshots do, without reading their rows.

    A tenant that does not exist is absent.
    """
    found = FINGERPRINTS.all(tenant_ids=list(map(str, tenant_ids)), types=TYPES)
    return {row.tenant_id: row.fingerprint for row in found}


def fingerprint(tenant_id: UUID) -> str:
    """The fingerprint of one tenant; raises NotFound."""
    found = fingerprints([tenant_id]).get(tenant_id)
    if found is None:
        raise NotFound.of("tenant")
    return found


def snapshot(tenant_id: UUID) -> dict[str, Json]:
    """The document, at least as new as a fingerprint that was read before.

    Raises NotFound and SnapshotTooLarge.
    """
    basics = FIND_BASICS.get("tenant", tenant_id=tenant_id, service=sorted(TENANT))
    required = {one["requires_flag"] for one in basics.permissions.values()}
    found = evaluate_all(tenant_id)
    flags = {key: _flag(one) for key, one in found.flags.items() if key in required}
    compared = {
        condition["attribute"]
        for flag in flags.values()
        for rule in flag["rules"]
        for condition, _ in comparisons(rule.get("when", {}))
    }
    rows = LIST_ROWS.first(
        tenant_id=tenant_id,
        user_names=_after("user.meta_data.", compared),
        resource_names=_after("context.resource_", compared),
        bound=MAX_ROWS,
    )
    if rows is None:
        raise SnapshotTooLarge
    names = [name for name in compared if name.startswith("tenant.")]
    facts = {} if found.facts is None else {name: found.facts[name] for name in names}
    return {
        "tenant": {**basics.tenant, "facts": {"tenant.id": str(tenant_id), **facts}},
        "stream": f"{current_config().stream_url.rstrip('/')}{STREAM}?tenant_id={tenant_id}",
        "permissions": basics.permissions,
        "roles": basics.roles,
        "limits": basics.limits,
        "flags": flags,
        **{name: rows_of or [] for name, rows_of in rows._asdict().items()},
    }


def _flag(flag: EffectiveFlag) -> dict[str, Any]:
    """The facts that decide whether a flag is on in a context: its rules, unless none is asked."""
    is_boolean = flag.type == FlagType.BOOLEAN
    is_ruled = is_boolean and flag.layer in (Layer.PRESET, Layer.RULE)
    rules = []
    for rule in flag.rules if is_ruled else ():
        one = {name: rule[name] for name in ("when", "value") if name in rule}
        if "rollout" in rule:
            attribute, salt, weight = rollout_of(rule, flag.key)
            one["rollout"] = {"attribute": attribute, "salt": salt, "weight": weight}
        rules.append(one)
    value = flag.preset_value if is_ruled else flag.value
    return {"value": is_boolean and value is True, "rules": rules}


def _after(prefix: str, attributes: Iterable[str]) -> list[str]:
    return [name.removeprefix(prefix) for name in attributes if name.startswith(prefix)]
