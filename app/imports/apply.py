"""Applying a set of lines: its rows and their audit rows are written by a few statements.

Each line is applied or refused by itself. If PostgreSQL refuses the statement of a whole set, its
lines are applied one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from app.auth.permissions import Role
from app.core.actors import Actor
from app.core.db.queries import find_row
from app.core.db.transactions import savepoint
from app.core.db.writes import Writes, writes
from app.core.errors import AppError, Invalid
from app.core.json_text import differs
from app.custom_fields import metadata
from app.custom_fields.entities import TENANT, USER
from app.flags import overrides
from app.flags.models import FeatureOverride
from app.imports import access_lines
from app.imports.line_schemas import Kind
from app.imports.lines import Line
from app.imports.outcomes import OF_ONE_LINE, REFUSED_BY_POSTGRES, Outcome, Result, entries
from app.imports.rows import Rows, unknown
from app.memberships import directories, seats
from app.memberships import service as memberships
from app.memberships.models import Membership
from app.memberships.service import IdpMembershipIdTaken
from app.plans import presets
from app.plans.following import follow_plan
from app.plans.models import PlanPreset
from app.subscriptions import service as subscriptions
from app.subscriptions.models import Subscription
from app.tenants import service as tenants
from app.tenants import slugs
from app.tenants.models import Tenant
from app.tenants.service import TenantDeleting
from app.users import service as users
from app.users.emails import check_claims
from app.users.models import User

ATTEMPTS = 2  # the second one sees the rows that another transaction has just added


def apply_set(lines: Sequence[Line], *, actor: Actor) -> list[Result]:
    """Apply the lines of a set in the current transaction, in the platform's scope."""
    refusal: Exception | None = None
    for _ in range(ATTEMPTS):
        try:
            with savepoint():
                return _Set(lines, actor).apply()
        except REFUSED_BY_POSTGRES as fault:
            refusal = fault
    if len(lines) == 1:
        return [Result(lines[0], Outcome.FAILED, entries(refusal))]
    return [result for line in lines for result in apply_set([line], actor=actor)]


Steps = Mapping[Kind, Callable[[Line], Outcome | None]]
"""For each type of line the function that applies it; it returns None if a later step does."""


class _Set:
    """One set of lines while it is applied.

    New tenants, users, memberships and subscriptions are inserted by one statement at the end, and
    changes of users and memberships are written by one statement per table. After that plans follow
    the subscriptions, and then overrides, roles, resources and assignments are written.
    """

    def __init__(self, lines: Sequence[Line], actor: Actor) -> None:
        self._lines = lines
        self._actor = actor
        self._rows = Rows(lines)
        self._slugs: set[str] = set()
        self._new_users: list[User] = []
        self._claimants: list[User] = []  # of an e-mail address that no other user may have
        self._changed_users: list[tuple[User, dict[str, Any]]] = []
        self._changed_memberships: dict[UUID, tuple[Membership, dict[str, Any]]] = {}
        self._joined: set[UUID] = set()  # tenants that may have more active members
        self._replanned: dict[UUID, list[Subscription]] = {}  # new subscriptions

    def apply(self) -> list[Result]:
        """The results in the order of the lines.

        Raises one of REFUSED_BY_POSTGRES where a line cannot be written with the others.
        """
        results = {
            line.number: Result(line, Outcome.FAILED, line.errors)
            for line in self._lines
            if line.errors
        }
        with writes() as w:
            first: Steps = {
                Kind.TENANT: partial(self._apply_tenant, into=w),
                Kind.USER: partial(self._apply_user, into=w),
                Kind.MEMBERSHIP: partial(self._apply_membership, into=w),
                Kind.SUBSCRIPTION: partial(self._create_subscription, into=w),
            }
            self._run(first, results)
        with writes() as w:
            users.update_many(self._changed_users, actor=self._actor, into=w)
            changed = list(self._changed_memberships.values())
            memberships.update_many(changed, actor=self._actor, into=w)
            for tenant_id, created in self._replanned.items():
                follow_plan(tenant_id, created, actor=self._actor, into=w)
        users.index_meta_data((user, {}) for user in self._new_users)
        check_claims(*(user for user in self._claimants if user.is_active))
        seats.check_within_limits(self._joined, actor=self._actor)
        last: Steps = {
            Kind.SUBSCRIPTION: self._update_subscription,
            Kind.OVERRIDE: self._apply_override,
            **{
                kind: partial(self._apply_access, step) for kind, step in access_lines.STEPS.items()
            },
        }
        self._run(last, results)
        return [results[line.number] for line in self._lines]

    def _run(self, steps: Steps, results: dict[int, Result]) -> None:
        """Apply each line that has no result yet, if there is a step for its type."""
        for line in self._lines:
            step = steps.get(line.kind) if line.kind else None
            if step is None or line.number in results:
                continue
            try:
                outcome = step(line)
            except OF_ONE_LINE as fault:
                results[line.number] = Result(line, Outcome.FAILED, entries(fault))
            else:
                if outcome is not None:
                    results[line.number] = Result(line, outcome)

    def _apply_tenant(self, line: Line, *, into: Writes) -> Outcome:
        values, rows = line.values, self._rows
        known = rows.tenants.get(values["idp_org_id"])
        if known is not None:
            if values.get("is_active") and known.deletes_at is not None:
                raise TenantDeleting
            if "meta_data" in values:
                metadata.check_all(TENANT, known.id, known.meta_data, values["meta_data"])
            tenants.update_read(known, values, actor=self._actor, into=into)
            return Outcome.UPDATED if _changes(known, values) else Outcome.UNCHANGED
        if "slug" not in values:
            free = slugs.find_free(values["name"], reserved=self._slugs)
            values = {**values, "slug": free}
        self._slugs.add(values["slug"])
        tenant = tenants.insert(values, with_trial=False, actor=self._actor, into=into)
        rows.tenants[values["idp_org_id"]] = tenant
        return Outcome.CREATED

    def _apply_user(self, line: Line, *, into: Writes) -> Outcome:
        tenant, rows, values = self._rows.tenant_of(line), self._rows, _own(line)
        known = rows.users.get((tenant.id, values["idp_user_id"]))
        if known is None:
            tenants.check_accepts_people(tenant)
            user = users.insert_in(tenant, values, actor=self._actor, into=into)
            rows.add_user(user)
            self._new_users.append(user)
            self._claimants.append(user)
            return Outcome.CREATED
        changes = _changes(known, values)
        is_managed = known.id in rows.managed and bool(changes.keys() - {"meta_data"})
        directories.check_may_change(is_managed=is_managed, actor=self._actor)
        if "meta_data" in changes:
            metadata.check_all(USER, tenant.id, known.meta_data, changes["meta_data"])
        if changes.get("is_active") is False:
            rows.lose_owner(tenant.id, known.id, actor=self._actor)
        return self._change_user(known, changes)

    def _change_user(self, known: User, changes: dict[str, Any]) -> Outcome:
        if not changes:
            return Outcome.UNCHANGED
        user = known._replace(**changes, **users.with_key(changes))
        if users.claims_address(known, user):
            self._claimants.append(user)
        if changes.get("is_active"):
            self._joined.add(user.tenant_id)
        self._changed_users.append((known, changes))
        self._rows.add_user(user)
        self._rows.note_owner(self._rows.memberships.get((user.tenant_id, user.id)), user)
        return Outcome.UPDATED

    def _apply_membership(self, line: Line, *, into: Writes) -> Outcome:
        tenant, rows, values = self._rows.tenant_of(line), self._rows, _own(line)
        values["role"] = str(values["role"])
        known = rows.memberships_by_id.get((tenant.id, values.get("idp_membership_id", "")))
        if known is None or values.get("idp_user_id"):
            user = rows.user_of(line, tenant)
            if known is not None and known.user_id != user.id:
                raise Invalid(*entries(IdpMembershipIdTaken()))
            known = rows.memberships.get((tenant.id, user.id))
            if known is None:
                return self._create_membership(user, values, into=into)
        values.pop("idp_user_id", None)
        changes = _changes(known, values)
        if not changes:
            return Outcome.UNCHANGED
        has_mapped_role = rows.managed.get(known.user_id)
        is_managed = ("is_active" in changes and has_mapped_role is not None) or (
            "role" in changes and has_mapped_role is True
        )
        directories.check_may_change(is_managed=is_managed, actor=self._actor)
        membership = known._replace(**changes)
        is_demoted = known.role == Role.OWNER != membership.role
        if is_demoted or not membership.is_active:
            rows.lose_owner(
                tenant.id, known.user_id, actor=self._actor, in_one_way=membership.is_active
            )
        if changes.get("is_active"):
            self._joined.add(tenant.id)
        # An earlier line may have changed it too, by its other id.
        first, earlier = self._changed_memberships.get(known.id, (known, {}))
        self._changed_memberships[known.id] = first, {**earlier, **changes}
        rows.add_membership(membership)
        rows.note_owner(membership, rows.users_by_id[known.user_id])
        return Outcome.UPDATED

    def _create_membership(self, user: User, values: dict[str, Any], *, into: Writes) -> Outcome:
        del values["idp_user_id"]
        membership = memberships.create_for(user, values, actor=self._actor, into=into)
        if membership.is_active and user.is_active:
            self._joined.add(user.tenant_id)
        self._rows.add_membership(membership)
        self._rows.note_owner(membership, user)
        return Outcome.CREATED

    def _create_subscription(self, line: Line, *, into: Writes) -> Outcome | None:
        tenant, values = self._rows.tenant_of(line), _own(line)
        if (tenant.id, values["bp_subscription_id"]) in self._rows.subscriptions:
            return None
        subscription = subscriptions.insert_in(tenant.id, values, actor=self._actor, into=into)
        self._replanned.setdefault(tenant.id, []).append(subscription)
        return Outcome.CREATED

    def _update_subscription(self, line: Line) -> Outcome:
        values = _own(line)
        tenant_id = self._rows.tenant_of(line).id
        known = self._rows.subscriptions[tenant_id, values["bp_subscription_id"]]
        if not _changes(known, values):
            return Outcome.UNCHANGED
        stamp = values.pop("source_timestamp", None)
        updated = subscriptions.update_subscription(
            known.id, values, source_timestamp=stamp, actor=self._actor
        )
        is_same = updated.subscription.version == known.version
        return Outcome.UNCHANGED if is_same else Outcome.UPDATED

    def _apply_override(self, line: Line) -> Outcome:
        tenant_id, values = self._rows.tenant_of(line).id, _own(line)
        preset = self._preset_of(tenant_id, values.pop("preset_name", None))
        place: dict[str, Any] = {"tenant_id": tenant_id, "plan_preset_id": preset.id}
        known = find_row(FeatureOverride, **place, flag_key=values["flag_key"])
        if known is None:
            overrides.create_override(tenant_id, place | values, actor=self._actor)
            return Outcome.CREATED
        changes = _changes(known, values)
        if not changes:
            return Outcome.UNCHANGED
        written = {"flag_value": known.flag_value, **changes}
        overrides.update_override(known.id, written, is_superadmin=True, actor=self._actor)
        return Outcome.UPDATED

    def _apply_access(self, step: access_lines.Step, line: Line) -> Outcome:
        tenant_id = self._rows.tenant_of(line).id
        try:
            with savepoint():
                return step(tenant_id, _own(line), self._actor)
        except AppError as fault:
            raise Invalid(*entries(fault)) from None

    def _preset_of(self, tenant_id: UUID, name: str | None) -> PlanPreset:
        if name is None:  # the plan as it is now: a subscription of this set may have changed it
            tenant = find_row(Tenant, id=tenant_id)
            name = tenant.plan_name if tenant else ""
        preset = presets.find_preset(name)
        if preset is None:
            raise unknown("preset_name", "there is no such preset", name)
        return preset


def _own(line: Line) -> dict[str, Any]:
    """The line's values without its tenant."""
    return {name: value for name, value in line.values.items() if name != "idp_org_id"}


def _changes(row: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if differs(getattr(row, name), value)}
