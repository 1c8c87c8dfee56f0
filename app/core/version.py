"""The version of the service and of its API, as CHANGELOG.md has it (Semantic Versioning)."""

VERSION = "2.0.0"
HEADER = "X-API-Version"
"""The header of each answer that names the version."""
