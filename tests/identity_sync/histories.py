"""Simulated identity providers: random but valid histories, told in each provider's own form.

The world is small: three organizations, some people, their places. Each operation moves the
clock and gives the events that the provider would send, with its ids, times and habits; what
the world holds in the end is what the rows have to show.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

Body = dict[str, Any]
ROLES = ("member", "admin", "viewer", "billing")


@dataclass
class Organization:
    id: str
    name: str
    created_at: datetime
    updated_at: datetime
    exists: bool = True


@dataclass
class Person:
    id: str
    email: str
    first_name: str
    last_name: str
    created_at: datetime
    updated_at: datetime
    suspended: bool = False
    exists: bool = True


@dataclass
class Place:
    id: str
    organization_id: str
    user_id: str
    role: str
    created_at: datetime
    updated_at: datetime
    exists: bool = True


@dataclass
class World:
    """One provider's truth, and the events it sent so far."""

    provider: "Provider"
    random: random.Random
    now: datetime = datetime(2026, 1, 5, 9, tzinfo=UTC)
    organizations: dict[str, Organization] = field(default_factory=dict)
    people: dict[str, Person] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)
    events: list[Body] = field(default_factory=list)

    def live(self, events: int) -> None:
        """Begin with three organizations, then do things until there are this many events."""
        for number in range(3):
            self.create_organization(f"org_{number}", f"Company {number}")
        operations = [
            (self.create_person, 3),
            (self.join, 6),
            (self.change_role, 4),
            (self.leave, 3),
            (self.rename_person, 2),
            (self.suspend, 1),
            (self.delete_person, 1),
            (self.rename_organization, 2),
            (self.delete_organization, 1),
        ]
        while len(self.events) < events:
            (operation,) = self.random.choices(
                [found for found, _ in operations], [weight for _, weight in operations]
            )
            operation()

    def create_organization(self, id_: str, name: str) -> None:
        now = self._tick()
        self.organizations[id_] = Organization(id_, name, now, now)
        self._tell(self.provider.organization("created", self.organizations[id_], now))

    def rename_organization(self) -> None:
        if found := self._pick([o for o in self.organizations.values() if o.exists]):
            found.updated_at = now = self._tick()
            found.name = f"{found.name.split(' alias ')[0]} alias {self.random.randrange(100)}"
            self._tell(self.provider.organization("updated", found, now))

    def delete_organization(self) -> None:
        existing = [found for found in self.organizations.values() if found.exists]
        if len(existing) == 3:
            found = self._pick(existing)
            found.exists = False
            self._tell(self.provider.organization("deleted", found, self._tick()))

    def create_person(self) -> None:
        gone = self._pick([p for p in self.people.values() if not p.exists])
        number = len(self.people)
        if number >= 6 and gone is None:
            return
        now = self._tick()
        comes_back = gone is not None and self.provider.reuses_people and self.random.random() < 0.5
        id_ = gone.id if comes_back and gone else f"user_{number}"
        person = Person(id_, f"{id_}@example.com", f"First{number}", "Last", now, now)
        self.people[id_] = person
        self._tell(self.provider.person("created", person, now))

    def rename_person(self) -> None:
        if person := self._somebody():
            person.updated_at = now = self._tick()
            person.last_name = f"Last{self.random.randrange(100)}"
            self._tell_person("updated", person, now)

    def suspend(self) -> None:
        person = self._somebody()
        if person and self.provider.suspends:
            person.updated_at = now = self._tick()
            person.suspended = not person.suspended
            self._tell_person("updated", person, now)

    def delete_person(self) -> None:
        if person := self._somebody():
            now = self._tick()
            for place in self._places(person):
                place.exists = False
                if self.provider.tells_of_places_of_the_deleted:
                    self._tell(self.provider.place("deleted", place, person, self._tick()))
            person.exists = False
            self._tell_person("deleted", person, now if self.provider.suspends else self._tick())

    def join(self) -> None:
        organization = self._pick([o for o in self.organizations.values() if o.exists])
        person = self._somebody()
        if not organization or not person:
            return
        places = self._places(person)
        taken = any(place.organization_id == organization.id for place in places)
        if taken or (places and not self.provider.several_organizations):
            return
        now = self._tick()
        number = len(self.places)
        role = self.random.choice(ROLES) if self.provider.has_roles else "member"
        place = Place(f"place_{number}", organization.id, person.id, role, now, now)
        self.places.append(place)
        self._tell(self.provider.place("created", place, person, now))

    def change_role(self) -> None:
        place = self._pick([place for place in self.places if place.exists])
        if place and self.provider.has_roles:
            place.updated_at = now = self._tick()
            before, place.role = place.role, self.random.choice(ROLES)
            person = self.people[place.user_id]
            self._tell(self.provider.role(place, person, before, now, self._tick()))

    def leave(self) -> None:
        if place := self._pick([place for place in self.places if place.exists]):
            place.exists = False
            person = self.people[place.user_id]
            self._tell(self.provider.place("deleted", place, person, self._tick()))

    def _somebody(self) -> Person | None:
        return self._pick([person for person in self.people.values() if person.exists])

    def _places(self, person: Person) -> list[Place]:
        return [place for place in self.places if place.exists and place.user_id == person.id]

    def _pick(self, choices: list[Any]) -> Any:
        return self.random.choice(choices) if choices else None

    def _tick(self) -> datetime:
        self.now += timedelta(seconds=self.random.randint(1, 90))
        return self.now

    def _tell_person(self, change: str, person: Person, now: datetime) -> None:
        places = [place for place in self.places if place.user_id == person.id]
        self._tell(self.provider.person(change, person, now, places))

    def _tell(self, bodies: list[Body]) -> None:
        for body in bodies:
            self.events.append(self.provider.numbered(body, len(self.events)))

    def truth(self) -> dict[str, Any]:
        """What has to be shown: active tenants, and who is in them with which role."""
        return {
            "tenants": {o.id: (o.name, o.exists) for o in self.organizations.values()},
            "active": {
                (place.organization_id, place.user_id): place.role
                for place in self.places
                if place.exists
            },
        }


def iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def millis(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


class Provider:
    """How a provider tells things; the generic form, and what others differ in."""

    name = "generic"
    preset = "standard_webhooks"
    suspends = True
    several_organizations = True
    has_roles = True
    tells_of_places_of_the_deleted = False
    reuses_people = True

    def numbered(self, body: Body, number: int) -> Body:
        return {"id": f"evt_{number}", **body}

    def organization(self, change: str, found: Organization, now: datetime) -> list[Body]:
        data = {"id": found.id}
        if change != "deleted":
            data |= {"name": found.name, "updated_at": iso(found.updated_at)}
        return [self._event(f"organization.{change}", data, now)]

    def person(
        self, change: str, person: Person, now: datetime, places: Sequence[Place] = ()
    ) -> list[Body]:
        data: Body = {"id": person.id}
        if change != "deleted":
            data |= {"email": person.email, **_names(person), "active": not person.suspended}
        return [self._event(f"user.{change}", data, now)]

    def place(self, change: str, place: Place, person: Person, now: datetime) -> list[Body]:
        data = {"organization_id": place.organization_id, "user_id": place.user_id}
        if change != "deleted":
            data["role"] = place.role
        return [self._event(f"membership.{change}", data, now)]

    def role(
        self, place: Place, person: Person, before: str, now: datetime, then: datetime
    ) -> list[Body]:
        return self.place("updated", place, person, now)

    @staticmethod
    def _event(type_: str, data: Body, now: datetime) -> Body:
        return {"type": type_, "timestamp": iso(now), "data": data}


class WorkOS(Provider):
    name = preset = "workos"
    suspends = False
    tells_of_places_of_the_deleted = True
    reuses_people = False

    def organization(self, change: str, found: Organization, now: datetime) -> list[Body]:
        data = {"object": "organization", "id": found.id, "name": found.name, **_times(found)}
        return [_workos(f"organization.{change}", data, now)]

    def person(
        self, change: str, person: Person, now: datetime, places: Sequence[Place] = ()
    ) -> list[Body]:
        data = {"object": "user", "id": person.id, "email": person.email}
        data |= {**_names(person), **_times(person)}
        return [_workos(f"user.{change}", data, now)]

    def place(self, change: str, place: Place, person: Person, now: datetime) -> list[Body]:
        data = {
            "object": "organization_membership",
            "id": place.id,
            "organization_id": place.organization_id,
            "user_id": place.user_id,
            "status": "inactive" if change == "deleted" else "active",
            "role": {"slug": place.role},
            **_times(place),
        }
        return [_workos(f"organization_membership.{change}", data, now)]


def _workos(event: str, data: Body, now: datetime) -> Body:
    return {"event": event, "data": data, "created_at": iso(now + timedelta(milliseconds=37))}


def _names(person: Person) -> Body:
    return {"first_name": person.first_name, "last_name": person.last_name}


def _times(found: Organization | Person | Place) -> Body:
    return {"created_at": iso(found.created_at), "updated_at": iso(found.updated_at)}


class Clerk(Provider):
    name = preset = "clerk"
    tells_of_places_of_the_deleted = True
    reuses_people = False

    def numbered(self, body: Body, number: int) -> Body:
        return {**body, "instance_id": f"ins_{number}"}

    def organization(self, change: str, found: Organization, now: datetime) -> list[Body]:
        data: Body = {"object": "organization", "id": found.id, "slug": found.id.replace("_", "-")}
        data |= {"deleted": True} if change == "deleted" else {"name": found.name, **_epochs(found)}
        return [_clerk(f"organization.{change}", data, now)]

    def person(
        self, change: str, person: Person, now: datetime, places: Sequence[Place] = ()
    ) -> list[Body]:
        if change == "deleted":
            data: Body = {"object": "user", "id": person.id, "deleted": True}
            return [_clerk("user.deleted", data, now) | {"timestamp": int(now.timestamp())}]
        data = {
            "object": "user",
            "id": person.id,
            **_names(person),
            "banned": person.suspended,
            "primary_email_address_id": "idn_1",
            "email_addresses": [{"id": "idn_1", "email_address": person.email}],
            **_epochs(person),
        }
        return [_clerk(f"user.{change}", data, now)]

    def place(self, change: str, place: Place, person: Person, now: datetime) -> list[Body]:
        data = {
            "object": "organization_membership",
            "id": place.id,
            "organization": {"object": "organization", "id": place.organization_id},
            "public_user_data": {"user_id": place.user_id},
            "role": f"org:{place.role}",
            **_epochs(place),
        }
        return [_clerk(f"organizationMembership.{change}", data, now)]


def _clerk(type_: str, data: Body, now: datetime) -> Body:
    return {"object": "event", "type": type_, "data": data, "timestamp": millis(now) + 21}


def _epochs(found: Organization | Person | Place) -> Body:
    return {"created_at": millis(found.created_at), "updated_at": millis(found.updated_at)}


class Auth0(Provider):
    name = preset = "auth0"

    def organization(self, change: str, found: Organization, now: datetime) -> list[Body]:
        name = found.id.replace("_", "-")
        data = {"id": found.id, "name": name, "display_name": found.name}
        return [_auth0(f"organization.{change}", data, now)]

    def person(
        self, change: str, person: Person, now: datetime, places: Sequence[Place] = ()
    ) -> list[Body]:
        data = {
            "user_id": person.id,
            "email": person.email,
            "given_name": person.first_name,
            "family_name": person.last_name,
            "blocked": person.suspended,
            **_times(person),
        }
        if change == "deleted":
            data["deleted_at"] = iso(now)
        return [_auth0(f"user.{change}", data, now + timedelta(milliseconds=4))]

    def place(self, change: str, place: Place, person: Person, now: datetime) -> list[Body]:
        pair = _auth0_pair(place)
        if change == "deleted":
            return [_auth0("organization.member.deleted", pair, now)]
        return [_auth0("organization.member.added", pair, now), self._grant(place, "assigned", now)]

    def role(
        self, place: Place, person: Person, before: str, now: datetime, then: datetime
    ) -> list[Body]:
        if before == place.role:
            return []
        withdrawn = self._grant(replace(place, role=before), "deleted", now)
        return [withdrawn, self._grant(place, "assigned", then)]

    @staticmethod
    def _grant(place: Place, what: str, now: datetime) -> Body:
        role = {"id": f"rol_{place.role}", "name": place.role}
        data = {**_auth0_pair(place), "role": role}
        later = now + timedelta(milliseconds=5)
        return _auth0(f"organization.member.role.{what}", data, later)


def _auth0(type_: str, data: Body, now: datetime) -> Body:
    return {
        "specversion": "1.0",
        "type": type_,
        "source": "urn:auth0:kestrel-dev.auth0app.com",
        "time": iso(now),
        "data": {"object": data},
        "a0tenant": "kestrel-dev",
    }


def _auth0_pair(place: Place) -> Body:
    return {"organization": {"id": place.organization_id}, "user": {"user_id": place.user_id}}


class Logto(Provider):
    name = preset = "logto"
    has_roles = False

    def numbered(self, body: Body, number: int) -> Body:
        return {**body, "hookId": "hook_1", "ip": f"198.51.100.{number}"}

    def organization(self, change: str, found: Organization, now: datetime) -> list[Body]:
        event = {"created": "Created", "updated": "Data.Updated", "deleted": "Deleted"}[change]
        data = {"id": found.id, "name": found.name} if change != "deleted" else None
        params = {} if change == "created" else {"id": found.id}
        return [_logto(f"Organization.{event}", data, params, now)]

    def person(
        self, change: str, person: Person, now: datetime, places: Sequence[Place] = ()
    ) -> list[Body]:
        if change == "deleted":
            return [_logto("User.Deleted", None, {"userId": person.id}, now)]
        data = {
            "id": person.id,
            "primaryEmail": person.email,
            "name": f"{person.first_name} {person.last_name}",
            "isSuspended": person.suspended,
            "updatedAt": millis(person.updated_at),
        }
        event = "User.Created" if change == "created" else "User.Data.Updated"
        return [_logto(event, data, {} if change == "created" else {"userId": person.id}, now)]

    def place(self, change: str, place: Place, person: Person, now: datetime) -> list[Body]:
        body = _logto("Organization.Membership.Updated", None, {"id": place.organization_id}, now)
        body["organizationId"] = place.organization_id
        body["removedUserIds" if change == "deleted" else "addedUserIds"] = [place.user_id]
        return [body]


def _logto(event: str, data: Body | None, params: Body, now: datetime) -> Body:
    return {"event": event, "createdAt": iso(now), "params": params, "data": data}


class Stytch(Provider):
    """A member is a person in one organization: people are told of as members only."""

    name = preset = "stytch"
    several_organizations = False
    reuses_people = False

    def numbered(self, body: Body, number: int) -> Body:
        return {"event_id": f"webhook-event-{number}", **body}

    def organization(self, change: str, found: Organization, now: datetime) -> list[Body]:
        data = {
            "organization_id": found.id,
            "organization_name": found.name,
            "organization_slug": found.id.replace("_", "-"),
            "updated_at": seconds(found.updated_at),
        }
        told = {} if change == "deleted" else {"organization": data}
        return [_stytch("organization", change, found.id, told, now)]

    def person(
        self, change: str, person: Person, now: datetime, places: Sequence[Place] = ()
    ) -> list[Body]:
        if not places:
            return []
        return self._member(change, places[-1], person, now)

    def place(self, change: str, place: Place, person: Person, now: datetime) -> list[Body]:
        if change == "deleted":
            person.exists = False  # nothing is left of a member
        return self._member(change, place, person, now)

    def role(
        self, place: Place, person: Person, before: str, now: datetime, then: datetime
    ) -> list[Body]:
        person.updated_at = now
        return self._member("updated", place, person, now)

    @staticmethod
    def _member(change: str, place: Place, person: Person, now: datetime) -> list[Body]:
        data = {
            "member_id": person.id,
            "organization_id": place.organization_id,
            "email_address": person.email,
            "name": f"{person.first_name} {person.last_name}",
            "status": "deleted" if person.suspended else "active",
            "roles": [{"role_id": f"stytch_{place.role}"}],
            "updated_at": seconds(max(person.updated_at, place.updated_at)),
        }
        told = {} if change == "deleted" else {"member": data}
        return [_stytch("member", change, person.id, told, now)]


def _stytch(object_type: str, change: str, id_: str, told: Body, now: datetime) -> Body:
    action = {"created": "CREATE", "updated": "UPDATE", "deleted": "DELETE"}[change]
    common = {"source": "DIRECT", "object_type": object_type, "action": action, "id": id_}
    return {**common, "timestamp": seconds(now), **told}


SIMULATED: dict[str, Provider] = {
    provider.name: provider
    for provider in (Provider(), WorkOS(), Clerk(), Auth0(), Logto(), Stytch())
}


def history(provider: str, *, seed: int, events: int = 30) -> World:
    """A world after its history, the same for the same seed."""
    world = World(SIMULATED[provider], random.Random(seed))
    world.live(events)
    return world
