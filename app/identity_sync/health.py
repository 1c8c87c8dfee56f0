"""Memberships and people of the identity provider that wait for their counterparts."""

WAITING = "SELECT FROM identity_objects WHERE is_waiting AND NOT is_deleted"
WORK = {"waiting_people": (WAITING, "/v1/identity/waiting")}
