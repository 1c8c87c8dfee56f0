"""Export and erasure of what is stored about a person or a tenant, in every table."""
