"""Faults made on purpose, and proofs that nothing is lost by them: ``python -m tests.faults NAME``."""
