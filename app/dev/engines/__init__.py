"""The private PostgreSQL and Redis: started, shared by all commands of an instance, stopped."""
