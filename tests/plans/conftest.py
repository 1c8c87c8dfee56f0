"""What assigned and decided plans need: the presets that the subscriptions of these tests name."""

from tests.subscriptions.conftest import presets

__all__ = ["presets"]
