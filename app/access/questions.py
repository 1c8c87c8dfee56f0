"""Questions about access: may this subject do this with this resource, now?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.core.db.queries import id_or_none
from app.core.json_text import Json
from app.users.emails import email_key

SCALARS = (str, int, float, bool)


@dataclass(frozen=True, slots=True)
class Thing:
    """A subject, an action or a resource. An action has no type; its ``id`` is its name."""

    id: str
    type: str = ""
    properties: Mapping[str, Json] = field(default_factory=dict)

    @property
    def place(self) -> tuple[str, str]:
        return self.type, self.id


@dataclass(frozen=True, slots=True)
class Question:
    """One question; ``permission`` is the action's name in lower case."""

    subject: Thing
    action: Thing
    resource: Thing
    context: Mapping[str, Json] = field(default_factory=dict)

    @property
    def permission(self) -> str:
        return self.action.id.lower()

    @property
    def consume(self) -> Mapping[str, Any] | None:
        """What a yes counts: a ``feature`` and an ``amount``."""
        return self.context.get("consume")

    @property
    def tenant_name(self) -> Json:
        """The tenant that the question names, if it names one."""
        return self.resource.properties.get("tenant_id") or self.context.get("tenant_id")

    def compared(self, user_id: str | None, attributes: Mapping[str, Json]) -> dict[str, Json]:
        """The context in which rules of flags are evaluated; ``attributes`` are the resource's."""
        found: dict[str, Json] = {
            name: one for name, one in self.context.items() if isinstance(one, SCALARS)
        }
        for prefix, properties in (
            ("subject", self.subject.properties),
            ("resource", {**attributes, **self.resource.properties}),
            ("action", self.action.properties),
        ):
            for name, one in properties.items():
                if isinstance(one, SCALARS):
                    found[f"{prefix}_{name}"] = one
        found["targetingKey"] = user_id
        return found


def meanings(subject: Thing) -> dict[str, Json]:
    """The ids by which a subject may be found; none for an unknown type."""
    text = subject.id
    match subject.type:
        case "user":
            return {"id": id_or_none(text), "name": text or None, "email_key": _address(text)}
        case "identity":
            return {"name": text or None}
        case "email":
            return {"email_key": _address(text)}
        case "api_key":
            return {"key_id": id_or_none(text)}
    return {}


def _address(text: str) -> str | None:
    return email_key(text) if "@" in text else None
