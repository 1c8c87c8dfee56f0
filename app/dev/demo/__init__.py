"""The demo data and the commands' way to create it."""
