"""The pages of docs/reference, generated from the code: ``python -m app.dev.reference``."""
