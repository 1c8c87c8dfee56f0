"""How pages say times, values and changes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from markupsafe import Markup

from app.core.clock import utcnow
from app.core.json_text import Json
from app.surfaces.commands.times import relative

NOUNS = {
    "api_key": "the API key",
    "override": "the override of",
    "plan_preset": "the plan",
    "email": "the message",
    "scim_connection": "the SCIM connection",
    "sso_connection": "the SSO connection",
    "setup_link": "the setup link",
    "plan_price": "the price",
    "billing_customer": "the customer",
    "billing_comparison": "the comparison with",
}
TOLD = ("sso_connection.certificate_expiring", "trial.ending")  # nobody did it
VERBS = {
    "updated": "changed",
    "meta_data_patched": "changed the metadata of",
    "directory_updated": "updated from the directory",
    "secret_rotated": "replaced the secret of",
    "rotated": "replaced the token of",
    "delivery_resent": "sent a delivery again to",
    "recovered": "sent again what was missed to",
    "tested": "sent a test to",
    "reordered": "moved",
    "deactivated": "ended",
    "role_changed": "changed the role of",
    "notes_changed": "changed the notes on",
    "deletion_requested": "requested the deletion of",
    "erasure_requested": "requested the erasure of",
    "idp_org_id_freed": "freed the organization id of",
    "over_seats": "added members beyond the seats of",
    "ownerless": "removed the last owner of",
    "drift_repaired": "repaired the drift of",
    "plan_unknown": "named an unknown plan in",
    "mapped": "chose the tenant of",
}
SYSTEMS = {
    "idp": "The identity provider",
    "email": "The e-mail provider",
    "billing": "The billing provider",
}
# Currencies whose minor unit is not a hundredth (ISO 4217).
NO_DIGITS = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
THREE_DIGITS = "BHD IQD JOD KWD LYD OMR TND"
SAID_BY_VERB = (
    "created", "deleted", "added", "delivery_resent", "replayed", "activated", "deactivated",
    "recovered", "tested", "exported", "opened", "revoked", "archived", "restored", "mapped",
    "started", "notes_changed",
)  # fmt: skip
NAME_FIELDS = ("name", "label", "email", "flag_key", "key")
NAMED_BY = ("price_id", "lookup_key", "customer_id", "provider")
"""The fields that name a row of billing, which may be gone."""
SHORTER = {
    "Of the subscriptions that have not ended, it has the latest start date and id.": (
        "The newest subscription decides."
    ),
}
"""Sentences of the API, as a page says them."""


def moment(text: str | None, *, empty: str = "–", lead: str = "") -> Markup:
    """How long ago a time is, or in how long; hover shows it, in the reader's zone and in UTC."""
    if not text:
        return Markup('<span class="quiet">{}</span>').format(empty)
    exact = datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    shown = Markup('<time datetime="{}" title="{}">{}{}</time>')
    return shown.format(text, exact, lead, relative(text))


def date(text: str) -> Markup:
    """A time as a day and a time of the day; the script shows it in the reader's zone."""
    exact = datetime.fromisoformat(text).astimezone(UTC)
    shown = Markup('<time datetime="{}" title="{}" data-exact>{}</time>')
    return shown.format(
        text, exact.strftime("%Y-%m-%d %H:%M UTC"), f"{day(text)}, {exact:%H:%M} UTC"
    )


def is_past(text: str | None) -> bool:
    return text is not None and datetime.fromisoformat(text) < utcnow()


def day(text: str) -> str:
    """The day of a time, in UTC."""
    exact = datetime.fromisoformat(text).astimezone(UTC)
    return f"{exact.day} {exact:%b %Y}"


def span(begin: str, end: str) -> str:
    """The time between two times, such as ``12 seconds`` or ``1:02:03``."""
    passed = datetime.fromisoformat(end) - datetime.fromisoformat(begin)
    if passed < timedelta(seconds=2):
        return "1 second" if passed >= timedelta(seconds=1) else "less than a second"
    if passed < timedelta(minutes=1):
        return f"{passed.seconds} seconds"
    return str(passed).partition(".")[0]


def resource(permission: str) -> str:
    """The subject of a permission, such as ``API keys``."""
    name = permission.partition(":")[0]
    known = {"api_keys": "API keys", "scim": "SCIM", "sso": "Single sign-on"}
    return known.get(name, name.replace("_", " ").capitalize())


def permissions(names: Sequence[str]) -> list[tuple[str, str]]:
    """The subjects that permissions allow to read, and to write."""
    verbs: dict[str, list[str]] = {"Read": [], "Write": []}
    for name in names:
        verbs["Read" if name.endswith(":read") else "Write"].append(resource(name))
    return [(verb, ", ".join(of)) for verb, of in verbs.items() if of]


def pretty(value: Json) -> str:
    """A JSON value on as many lines as it needs; texts as they are."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def money(amount: int, currency: str) -> str:
    """An amount of minor units, such as ``49.00 EUR`` or ``4,900 JPY``."""
    if not currency:
        return f"{Decimal(amount).scaleb(-2):,f}"
    digits = 0 if currency in NO_DIGITS else 3 if currency in THREE_DIGITS else 2
    return f"{Decimal(amount).scaleb(-digits):,f} {currency}"


def brief(value: Json) -> str:
    """A value in a sentence."""
    match value:
        case bool():
            return "on" if value else "off"
        case int() | float():
            return "no limit" if value == -1 else f"{value:,}"
        case str():
            return value or "nothing"
        case None:
            return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def differences(event: Json) -> list[tuple[str, Json, Json]]:
    """Each field that an audit event changes: its name, and the values before and after."""
    before, after = event["before"], event["after"]
    names = [*before, *(name for name in after if name not in before)]
    return [(name, before.get(name), after.get(name)) for name in names]


def net_change(row: Json) -> Json:
    """The net result of a row's changes, as an event: its ``name``, and what is ``said`` of it."""
    fields, done = row["changes"], {action.partition(".")[2] for action in row["actions"]}
    is_new, is_gone = "created" in done, bool(done & {"deleted", "erased"})
    verb = "created" if is_new else "deleted" if is_gone else "changed"
    said = ", ".join(fields).replace("_", " ") or "but nothing differs"
    known = (fields.get(name, {}) for name in NAME_FIELDS)
    names = [row["target_name"], *(one.get("after") or one.get("before") for one in known)]
    return {
        "name": next(filter(None, names), row["target_id"]),
        "said": f"{verb} {said}"
        if verb == "changed"
        else verb + " and deleted" * (is_new and is_gone),
        "is_gone": is_gone,
        "before": {} if is_new else {name: one["before"] for name, one in fields.items()},
        "after": {name: one["after"] for name, one in fields.items()},
    }


def person(user: Json) -> str:
    """The name of a user, or without one the e-mail address."""
    name = f"{user['first_name']} {user['last_name']}".strip()
    return name or user["email"] or "User"


def who(event: Json, you: str = "") -> str:
    """The actor of a change: a name, or the actor's id in words; ``you`` is the reader's id."""
    if event["actor"] == you:
        return "You"
    kind, _, name = event["actor"].partition(":")
    if kind == "setup_link":
        return f"{event.get('actor_name') or name} (setup link)"
    if event.get("actor_name"):
        return str(event["actor_name"])
    if kind == "system":
        return SYSTEMS.get(name, "The service")
    kinds = {"cli": "command line", "platform": "platform", "key": "API key", "scim": "SCIM"}
    return f"{name} ({kinds[kind]})" if kind in kinds else str(event["actor"])


def sentence(event: Json, *, with_actor: bool = True, you: str = "") -> Markup:
    """An audit event as a sentence, such as ``Ada raised api-calls to 2,000 until 7 Dec 2026``."""
    before, after = event["before"], event["after"]
    name = str(event.get("target_name") or "")
    if event["target_type"] == "limit":
        name = event["target_id"]
    if not name and event["target_type"].startswith(("plan_price", "billing_")):
        name = next(filter(None, map({**before, **after}.get, NAMED_BY)), "")
    said = _special(event["action"], name, before, after) or _general(event, name)
    is_told = event["target_type"] == "limit" or event["action"] in TOLD
    has_actor = with_actor and not is_told
    return Markup("{} {}").format(who(event, you), said) if has_actor else Markup("{}").format(said)


def _special(
    action: str, name: str, before: Mapping[str, Json], after: Mapping[str, Json]
) -> Markup | str:
    """The sentence of an action that people ask about; empty for every other action."""
    if action.startswith("override."):  # its row is gone once it has ended
        name = name or {**before, **after}.get("flag_key") or "a flag"
    match action:
        case "override.created" | "override.updated" if "flag_value" in after:
            return Markup("{} {} to {}{}").format(
                _direction(before.get("flag_value"), after["flag_value"]),
                name,
                brief(after["flag_value"]),
                _until(after.get("expires_at")),
            )
        case "override.deleted" | "override.expired":
            return f"ended the override of {name}"
        case "tenant.plan_assigned":
            is_new = "plan_name" in after
            named = f"assigned the plan {after.get('plan_name')}"
            said = named if is_new else "changed the assigned plan"
            reason = f": {after['reason']}" if after.get("reason") else ""
            return Markup("{}{}{}").format(said, _until(after.get("until")), reason)
        case "tenant.plan_withdrawn":
            return f"withdrew the assigned plan {before.get('plan_name', '')}"
        case "sso_connection.certificate_expiring":
            return f"A certificate of the SSO connection {name} ends soon"
        case "trial.ending" | "trial.ended":
            ending = {**before, **after}.get("plan_name", "")
            if action == "trial.ended":
                return f"ended the assigned plan {ending}"
            return f"The assigned plan {ending} ends soon"
        case "plan_price.created" | "plan_price.updated" if "plan_name" in after:
            return f"gave the price {name} the plan {after['plan_name']}"
        case "tenant.plan_changed":
            return f"changed the plan from {before['plan_name']} to {after['plan_name']}"
        case "membership.role_changed" | "membership.updated" if "role" in before:
            return f"changed the role of {name} from {before['role']} to {after['role']}"
        case "limit.warning":
            return f"{name} reached {after['percent']} %"
        case "limit.forecast" if "ends_at" in after:
            return Markup("{} ends at this pace on {}").format(name, date(after["ends_at"]))
        case "limit.reached":
            return f"{name} is used up"
        case "limit.overrun":
            return f"more of {name} was used than fits into its limit"
        case "import.completed" if "lines_done" in after:
            failed = after.get("lines_failed")
            left_out = f", {failed:,} of which failed" if failed else ""
            return f"imported {after['lines_done']:,} lines{left_out}"
        case "console.link_created":
            return "created a sign-in link"
        case "membership.created":
            return f"added {name} as {after.get('role')}"
        case "membership.deactivated":
            return f"ended the membership of {name}"
        case "tenant.suspended" | "tenant.activated":
            why = after.get("suspension_reason")
            return f"{action[7:]} the tenant{f': {why}' if why else ''}"
    return ""


def _general(event: Json, name: str) -> str:
    """The sentence of every other action: the verb, what was changed, and which of its fields."""
    kind, _, done = event["action"].partition(".")
    noun = NOUNS.get(kind, f"the {kind.replace('_', ' ')}")
    verb = VERBS.get(done, done.replace("_", " "))
    is_said = done in SAID_BY_VERB
    fields = "" if is_said else ", ".join(each for each, _, _ in differences(event)[:3])
    return f"{verb} {noun} {name}".rstrip() + (f" ({fields.replace('_', ' ')})" if fields else "")


def _direction(before: Json, after: Json) -> str:
    if before is None:
        return "set"
    if isinstance(before, bool | str | dict | list) or isinstance(after, bool | str | dict | list):
        return "changed"
    return "raised" if after == -1 or (before != -1 and after > before) else "lowered"


def _until(text: str | None) -> Markup:
    return Markup(" until {}").format(date(text)) if text else Markup("")
