"""The long proofs: ``python -m tests.soak [--part NAME]``, ten minutes in all at most."""
