"""Hostile clients, failing engines, and what the service shows of itself."""
