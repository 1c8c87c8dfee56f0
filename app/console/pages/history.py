"""The past of a tenant: pages as of a moment, what has changed between two, and going back."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from urllib.parse import urlencode
from uuid import UUID

from flask import abort, g, redirect, request

from app.console import api
from app.console.access import current_session
from app.console.blueprint import Shown, page
from app.console.fields import Field, choices
from app.console.lists import PAGE, Filter, Listing, filter_values, show_list, zone_of
from app.console.next_page import Notice, set_notice
from app.core.clock import utcnow
from app.core.json_text import Json

LOCAL = Field("", "", "datetime-local")
TIME = re.compile(r"(\d{4}-\d\d-\d\dT[\d:.]+)(Z|[+-]\d\d:\d\d)?")  # and not a position
FRIDAY = 4  # of datetime.weekday()
SINCE: dict[str, Callable[[datetime], datetime]] = {
    "The last hour": lambda now: now - timedelta(hours=1),
    "Since yesterday": lambda now: _midnight(now, 1),
    "Since Friday": lambda now: _midnight(now, (now.weekday() - FRIDAY) % 7 or 7),
    "The last 7 days": lambda now: now - timedelta(days=7),
}
MOMENTS = (Filter("from", "From", kind="datetime-local"), Filter("to", "To", kind="datetime-local"))
TYPE = Filter("target_type", "Type")
LACKS = {  # by the names in the API's header
    "groups": "A person whom the directory has deleted since is still in its groups.",
    "usage": "Usage was not recorded: nothing counts as used, and credits are those of the plan.",
    "order": "The order of changes this old is approximate.",
}
COLUMNS = "last_at target_type target_name target_id actor_name actors reasons actions changes"


@dataclass(frozen=True)
class Past:
    """A row as of ``moment``, a time or a position; of now where that is empty.

    ``now_url`` is the address of the page of now.
    """

    row: Json
    moment: str = ""
    now_url: str = ""

    @property
    def local(self) -> str:
        """The time as an input takes it; empty for a position."""
        return shown(self.moment) if TIME.fullmatch(self.moment) else ""

    @property
    def lacks(self) -> list[str]:
        """What the page lacks, in sentences."""
        return [sentence for name, sentence in LACKS.items() if name in g.lacks]

    @property
    def values(self) -> dict[str, object]:
        """What the template of a past gets: nothing of it can be changed."""
        can = current_session().can
        past = {"past": self, "can": lambda name: name.endswith(":read") and can(name)}
        return past if self.moment else {}

    def rows(self, path: str, tenant_id: UUID | None = None, **query: object) -> list[Json] | None:
        """A list as of the moment; None where the person may not read it."""
        answer = api.find(path, tenant_id=tenant_id, as_of=self.moment or None, **query)
        return None if answer is None else answer.data


def past(path: str, **query: object) -> Past:
    """The row at ``path`` as of the moment in the address, or now with what ``query`` asks for.

    Where the API has nothing as of it, the browser is led to the page of now, which says why.
    """
    moment = moment_of(next(filter(None, request.args.getlist("as_of")), "").strip())
    if not moment:
        return Past(api.get(path, **query).data)
    kept = urlencode({name: text for name, text in request.args.items() if name != "as_of"})
    now_url = f"{request.path}?{kept}".rstrip("?")
    answer = api.call("GET", path, query={"as_of": moment})
    if answer.status in (404, 422):
        missing = "Then it did not exist, or the audit trail does not have its creation."
        why = missing if answer.status == 404 else answer.refusal.removeprefix("Value error, ")
        notice = Notice(f"The past at {moment} cannot be shown. {why}", is_bad=True)
        abort(set_notice(redirect(now_url, 303), notice))
    return Past(api.succeeded(answer).data, moment, now_url)


def moment_of(text: str) -> str:
    """A moment as the API takes it: a time without a zone is in UTC."""
    found = TIME.fullmatch(text)
    return f"{text}Z" if found and not found[2] else text


def shown(text: str) -> str:
    """A time as an input takes it; a position as it is."""
    return str(LOCAL.shown(text)) if TIME.fullmatch(text) else text


@page("/tenants/<uuid:tenant_id>/audit/changes")
def list_changes(tenant_id: UUID) -> Shown:
    """Show each row that differs between two moments, by default since yesterday."""
    now = utcnow().astimezone(zone_of(request.args.get("zone", "")))
    since = SINCE.get(request.args.get("since", ""))
    if since:
        address = {"from": shown(since(now).isoformat())}
        return redirect(f"{request.path}?{urlencode(address)}", 303)
    given = {"from": SINCE["Since yesterday"](now).isoformat(), **filter_values((*MOMENTS, TYPE))}
    moments = {one.name: moment_of(given[one.name]) for one in MOMENTS if one.name in given}
    query = {**moments, "include": "target_name,actor_name"}
    answer = api.call("GET", f"/v1/tenants/{tenant_id}/changes", query=query)
    if answer.status == 404:  # the moment is before the tenant
        query["from"] = api.get_tenant(tenant_id).data["created_at"]
        answer = api.call("GET", f"/v1/tenants/{tenant_id}/changes", query=query)
    refused = answer.status in (409, 422)
    rows = [] if refused else api.succeeded(answer).data[::-1]
    types = choices(*sorted({row["target_type"] for row in rows}))
    rows = [row for row in rows if given.get(TYPE.name) in (None, row["target_type"])]
    listing = Listing((*MOMENTS, replace(TYPE, choices=types)), given, problem=answer.refusal)
    listing.values |= {name: shown(one) for name, one in moments.items()}
    at = max(0, request.args.get("cursor", 0, int))
    listing.rows = rows if request.args.get("format") == "csv" else rows[at : at + PAGE]
    listing.next_url = listing.url(cursor=str(at + PAGE)) if len(rows) > at + PAGE else ""
    return show_list("changes", "What has changed", listing, COLUMNS, since=SINCE)


def _midnight(now: datetime, days: int) -> datetime:
    """The beginning of the day so many days ago."""
    return (now - timedelta(days)).replace(hour=0, minute=0, second=0, microsecond=0)
