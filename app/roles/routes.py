"""/v1/permissions, /v1/roles, /v1/role-assignments and /v1/resources."""

from __future__ import annotations

from app.core.http.blueprint import Blueprint
from app.roles import models as models  # the tables

BLUEPRINTS: tuple[Blueprint, ...] = ()
