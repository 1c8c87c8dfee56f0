"""How PostgreSQL runs every statement that the service sends, on large tables."""
