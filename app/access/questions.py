"""Questions about access: may this subject do this with this resource, now?"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from app.core.db.queries import id_or_none
from app.core.json_text import Json
from app.users.emails import email_key

NOTHING: Mapping[str, Json] = MappingProxyType({})


class Thing(NamedTuple):
    """A subject, an action or a resource. An action has no type; its ``id`` is its name."""

    id: str = ""
    type: str = ""
    properties: Mapping[str, Json] = NOTHING

    @property
    def place(self) -> tuple[str, str]:
        return self.type, self.id


class Question(NamedTuple):
    """One question. ``consume`` of the context is what a yes counts: a feature and an amount."""

    subject: Thing
    action: Thing
    resource: Thing
    context: Mapping[str, Json] = NOTHING

    @property
    def permission(self) -> str:
        return self.action.id.lower()

    @property
    def tenant_name(self) -> Json:
        """The tenant that the question names; None if it names none."""
        return self.resource.properties.get("tenant_id") or self.context.get("tenant_id")

    def compared(self, attributes: Mapping[str, Json]) -> dict[str, Json]:
        """The context of rules of flags; ``attributes`` are those of the registered resource."""
        found = dict(self.context)
        for prefix, properties in (
            ("subject_", self.subject.properties),
            ("resource_", {**attributes, **self.resource.properties}),
            ("action_", self.action.properties),
        ):
            found.update((prefix + name, one) for name, one in properties.items())
        return {name: one for name, one in found.items() if not isinstance(one, dict | list)}


def meanings(subject: Thing) -> dict[str, Json]:
    """The ids by which a subject may be found; none for an unknown type."""
    address = email_key(subject.id) if "@" in subject.id else None
    match subject.type:
        case "user":
            found_by = {"id": id_or_none(subject.id), "name": subject.id or None}
            return {**found_by, "email_key": address}
        case "identity":
            return {"name": subject.id or None}
        case "email":
            return {"email_key": address}
        case "api_key":
            return {"key_id": id_or_none(subject.id)}
    return {}
