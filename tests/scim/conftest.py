"""A tenant with an owner, and a directory that is connected to it."""

import pytest

from tests.factories import create_member
from tests.scim.directory import Directory, create_connection


@pytest.fixture
def owner(tenant):
    return create_member(tenant, role="owner")


@pytest.fixture
def connection(tenant, owner):
    return create_connection(tenant)


@pytest.fixture
def directory(app, connection):
    return Directory(app, connection[1])
