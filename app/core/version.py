"""The version of the service and of its API (Semantic Versioning), the same as in CHANGELOG.md."""

VERSION = "2.0.0"
HEADER = "X-API-Version"
"""The header that names the version. Every answer has it."""
