"""What ``flask doctor`` and ``GET /v1/operations/findings`` check: one file for what is checked."""
