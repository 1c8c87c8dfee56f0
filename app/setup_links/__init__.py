"""Setup links: a part of the console for a customer's administrator who has no account."""
