"""Export and deletion of a tenant."""
