"""Subscriptions whose invoices are overdue."""

PAST_DUE = "SELECT FROM subscriptions WHERE status_class = 'past_due'"
WORK = {"past_due": (PAST_DUE, "/v1/billing/subscriptions?status_class=past_due")}
