"""The storage that `scim2-server` reads and writes: the domain's services, for one connection."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from scim2_models import (
    InvalidCursorException,
    NotImplementedException,
    Resource,
    ResourceType,
    ResponseParameters,
    SearchRequest,
)
from scim2_models.path import ScimFilter
from scim2_server.storage import ScimStorage, SearchPage

from app.connections.models import Connection
from app.core.actors import Actor
from app.core.db import transactions
from app.scim.group_store import GroupStore
from app.scim.resources import PROVIDER
from app.scim.user_store import UserStore


class Storage(ScimStorage):
    """The users and groups of a connection, in the request's transaction.

    In a bulk request each operation runs in a savepoint.
    """

    supports_cursors = True

    def __init__(self, connection: Connection, actor: Actor, *, is_bulk: bool) -> None:
        self._stores: dict[str, UserStore | GroupStore] = {
            "User": UserStore(connection, actor),
            "Group": GroupStore(connection, actor),
        }
        self._is_bulk = is_bulk

    def get(
        self,
        resource_type: ResourceType,
        resource_id: str,
        *,
        response_parameters: ResponseParameters | None = None,
    ) -> Resource:
        return self._of(resource_type).get(resource_id, response_parameters)

    def search(
        self,
        resource_types: list[ResourceType],
        search_request: SearchRequest,
        *,
        position: Any = None,
    ) -> SearchPage:
        """One page, sorted; ``position`` is the end of the page before.

        A search of several types has the resources of one type after those of another. Raises
        InvalidCursorException for a position of an earlier version.
        """
        if len(resource_types) != 1:
            return self._search_all(resource_types, search_request)
        if position is not None and not isinstance(position, list):
            raise InvalidCursorException
        after = None if position is None else (position[0], position[1])
        return self._of(resource_types[0]).search(search_request, after)

    def _search_all(self, resource_types: list[ResourceType], request: SearchRequest) -> SearchPage:
        if request.cursor is not None or request.sort_by is not None:
            raise NotImplementedException(detail="A cursor or sortBy is for /Users or /Groups.")
        total, resources = 0, list[Resource]()
        skipped = (request.start_index or 1) - 1
        for resource_type in resource_types:
            model: Any = PROVIDER.model_for(resource_type)
            rest = {
                "filter": request.filter and ScimFilter[model](request.filter),
                "start_index": max(0, skipped - total) + 1,
                "count": max(0, (request.count or 0) - len(resources)),
            }
            page = self._of(resource_type).search(request.model_copy(update=rest), None)
            total += page.total or 0
            resources += page.resources
        return SearchPage(total, resources)

    def create(self, resource_type: ResourceType, resource: Any) -> Resource:
        return self._of(resource_type).create(resource)

    def update(
        self,
        resource_type: ResourceType,
        resource: Any,
        *,
        expected_version: str | None = None,
    ) -> Resource:
        """The stored resource; RowChanged, and so a new attempt, if its version is another."""
        return self._of(resource_type).update(resource, expected_version)

    def delete(
        self, resource_type: ResourceType, resource_id: str, *, expected_version: str | None = None
    ) -> None:
        """Delete the resource; RowChanged if its version is another."""
        self._of(resource_type).delete(resource_id, expected_version)

    def operation(self) -> AbstractContextManager[None]:
        """A savepoint in a bulk request, so that a failed operation leaves nothing."""
        return transactions.savepoint() if self._is_bulk else nullcontext()

    def _of(self, resource_type: ResourceType) -> UserStore | GroupStore:
        return self._stores[str(resource_type.name)]
