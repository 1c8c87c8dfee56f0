"""``flask doctor``: one file for what is checked of the configuration, the database and Redis."""
