"""The checks of ``flask doctor`` and ``GET /v1/operations/findings``, one file for each subject."""
