"""How searching users by custom fields does at a million users: ``python -m benchmarks.search``."""
