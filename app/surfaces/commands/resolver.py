"""The rows that people name by a slug, an e-mail address or a name, found over the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from ..operations import Request, Send
from .answers import found_with, get, succeeded
from .parameters import OPTIONS, is_id
from .refusals import Refused, WrongArguments
from .text import printable

Row = Mapping[str, Any]

LISTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "tenant": ("/v1/tenants", ("slug", "idp_org_id")),
    "user": ("/v1/users", ("email", "idp_user_id")),
    "plan": ("/v1/billing/plans", ("name",)),
    "subscription": ("/v1/billing/subscriptions", ("bp_subscription_id",)),
    "membership": ("/v1/memberships/tenant", ()),
    "override": ("/v1/billing/flags/overrides", ("flag_key",)),
    "role": ("/v1/roles", ("key",)),
    "permission": ("/v1/permissions", ("key",)),
    "invitation": ("/v1/invitations", ("email",)),
    "flag": ("/v1/billing/flags", ("key",)),
}
"""The list of each kind, and the filters that a name is tried with, in this order."""
SEEN_BY = {kind: f"{kind}s list" for kind in ("plan", "membership", "role", "invitation")}
SEEN_BY["override"] = "flags overrides"
"""The command that shows a kind's names, where it is not ``search``."""
NARROWED = LISTS.keys() - {"tenant", "plan", "permission"}  # what a tenant has
WITHOUT_ID = ("audit_events", "console", "limit", "platform_admin", "usage")
"""The types of targets in the audit trail that have other names than ids."""


class Resolver:
    """Finds ids; ``tenant`` narrows the kinds of :data:`NARROWED` to a tenant, which it names."""

    def __init__(self, send: Send, tenant: str | None = None) -> None:
        self._send = send
        self._tenant = tenant

    def id_of(self, name: str, value: Any, values: Mapping[str, Any]) -> Any:
        """The value of an argument with ids in place of names; other values stay as they are.

        The row of ``target_id`` has the kind ``target_type``, among the other ``values``.
        """
        kind = OPTIONS.get(name)
        if name == "target_id" and (target := values.get("target_type")):
            kind = OPTIONS.get(f"{target}_id")
            if kind is None and target not in WITHOUT_ID and not is_id(value):
                raise WrongArguments(f"Give the id of the {target}, not {printable(value)}.")
        if kind not in LISTS or not isinstance(value, str):
            return value
        if is_id(value) and not (kind in NARROWED and self._tenant):
            return str(UUID(value))
        return self.find(kind, value)["id"]

    def is_for_all(self) -> bool:
        """Whether no tenant is named, and the credential is the platform's: it sees all tenants."""
        seen = Request("GET", "/v1/tenants", {"limit": "1"}, {})
        return self._tenant is None and self._send(seen).status != 403

    def find(self, kind: str, name: str) -> Row:
        """The row of this name or id; raises Refused unless exactly one row is found."""
        path, filters = LISTS[kind]
        narrowed = self._narrowed() if kind in NARROWED else {}
        if is_id(name):
            include = {"include": "tenant"} if narrowed else {}
            missing = f"There is no {kind} {name}."
            row: Row = get(self._send, f"{path}/{UUID(name)}", include, missing=missing)
            if narrowed and row["tenant"] and row["tenant"]["id"] != narrowed["tenant_id"]:
                raise _missing(kind, f"{name} in {self._tenant}")
            return row
        if kind == "membership":
            user = self.find("user", name)
            found = get(self._send, path, {"user_id": user["id"], "tenant_id": user["tenant_id"]})
        else:
            found = []
            if kind == "override" and self.is_for_all():
                raise WrongArguments(f"Say whose override of {printable(name)}: add --tenant SLUG.")
            for field in filters:
                found = found or self._list(kind, {field: name, **narrowed})
        if len(found) == 1:
            one: Row = found[0]
            return one
        where = f" in {self._tenant}" if narrowed else ""
        shown = printable(name)
        if not found:
            listed = found_with(SEEN_BY.get(kind, "search"))
            raise _missing(kind, f"{shown}{where}{listed}", self.nearest(kind, name))
        ids = ", ".join(row["id"] for row in found)
        advice = "give" if where else "add --tenant SLUG, or give"
        raise Refused(f"Several {kind}s are called {shown}{where}: {advice} one of the ids {ids}.")

    def nearest(self, kind: str, name: str) -> str:
        """The question whether the nearest name of a page was meant; empty without a near one."""
        from difflib import get_close_matches  # commands that find the row start sooner

        path, fields = LISTS[kind]
        answer = self._send(Request("GET", path, self._narrowed() if kind in NARROWED else {}, {}))
        rows = answer.body["data"] if answer.status == 200 else []
        own = (*fields, "id")[0]
        names = {
            str(row[one]).lower(): row[own] for row in rows for one in ("name", own) if one in row
        }
        near = get_close_matches(name.lower(), names, n=1)
        return f" Did you mean {printable(str(names[near[0]]))}?" if near else ""

    def _list(self, kind: str, query: Mapping[str, str]) -> list[Row]:
        """The first page of a list. A tenant's credential cannot list tenants: it gets its own."""
        answer = self._send(Request("GET", LISTS[kind][0], query, {}))
        if kind != "tenant" or answer.status != 403:
            rows: list[Row] = succeeded(answer).body["data"]
            return rows
        [named] = query.values()
        seen = self._send(Request("GET", "/v1/users", {"limit": "1", "include": "tenant"}, {}))
        users = seen.body["data"] if seen.status == 200 else []
        for one in users:
            if named in (one["tenant"]["slug"], one["idp_org_id"]):
                return [one["tenant"]]
        raise Refused(f"This credential cannot find {printable(named)}: give the tenant's id.")

    def _narrowed(self) -> dict[str, str]:
        tenant = self._tenant
        return {} if tenant is None else {"tenant_id": self.id_of("tenant_id", tenant, {})}


def _missing(kind: str, named: str, near: str = "") -> Refused:
    """The refusal for a row that does not exist, with the code of the API's 404."""
    detail = f"There is no {kind} {named}.{near}"
    code = f"{'plan_preset' if kind == 'plan' else kind}_not_found"
    return Refused(detail, {"detail": detail, "code": code})
