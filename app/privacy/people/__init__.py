"""Export and erasure of a person."""
