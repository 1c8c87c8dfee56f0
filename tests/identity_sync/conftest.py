"""Identity events arrive as webhooks, so these tests send them as the webhook tests do."""

from tests.inbox.conftest import sender

__all__ = ["sender"]
