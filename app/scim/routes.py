"""/scim, which is no part of the interface below /v1."""

from __future__ import annotations

from app.core.http.blueprint import Blueprint
from app.scim import endpoints

BLUEPRINTS: tuple[Blueprint, ...] = ()
PROTOCOLS = (endpoints.blp,)
