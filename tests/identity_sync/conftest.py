"""Identity events arrive as webhooks, so these tests send them as the webhook tests do."""

from tests.webhooks.conftest import sender

__all__ = ["sender"]
