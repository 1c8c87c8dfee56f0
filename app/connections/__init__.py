"""Connections of a tenant's directories, whose requests :mod:`app.scim` serves."""
