"""A tenant whose directory is connected, as in the tests of SCIM."""

from tests.scim.conftest import connection, directory, owner

__all__ = ["connection", "directory", "owner"]
