"""The rules across the fields of a limit's ``metering``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from app.core.errors import Entry, Location, value_error
from app.core.json_text import Json
from app.core.validation.messages import refused
from app.memberships.seats import SEATS
from app.plans.flag_types import FlagType, LimitKind, Policy, Rollover

NOT_OF_SEATS = ("kind", "burns")
ONLY_CREDITS = ("rollover", "rollover_cap", "warn_below")


def credit_keys(flags: Sequence[Mapping[str, Json]]) -> set[str]:
    """The keys of the limits that are credits."""
    return {
        flag["flag_key"]
        for flag in flags
        if flag["flag_type"] is FlagType.LIMIT
        and flag.get("metering", {}).get("kind") is LimitKind.CREDITS
    }


def metering_errors(
    flag: Mapping[str, Json], balances: Collection[str], loc: Location
) -> Iterator[Entry]:
    """The errors of a flag's ``metering``; ``balances`` are the credits of the preset."""
    if flag["flag_type"] is not FlagType.LIMIT:
        if "metering" in flag:
            yield refused("extra_forbidden", loc, flag["metering"])
        return
    if "metering" not in flag:
        yield refused("missing", loc, flag)
        return
    metering = flag["metering"]
    for name, reason in _rules(flag["flag_key"], metering, balances):
        yield value_error([*loc, name], reason, metering.get(name))


def _rules(
    key: str, metering: Mapping[str, Json], balances: Collection[str]
) -> Iterator[tuple[str, str]]:
    """The fields with errors, and what is wrong."""
    is_capped = metering.get("rollover") is Rollover.CAP
    if is_capped != ("rollover_cap" in metering):
        yield "rollover_cap", "the rollover `cap` has a cap, and no other rollover has one"
    if key == SEATS:
        for name in NOT_OF_SEATS:
            if name in metering:
                yield name, "seats are counted from the memberships"
    elif "kind" not in metering:
        for name in ONLY_CREDITS:
            if name in metering:
                yield name, "only credits have it"
        if "burns" in metering and metering["burns"]["credits"] not in balances:
            yield "burns", "`credits` must be the key of a limit of the kind credits"
    else:
        if metering["policy"] is Policy.SOFT:
            yield "policy", "credits are always hard"
        if "burns" in metering:
            yield "burns", "credits take no other credits"
