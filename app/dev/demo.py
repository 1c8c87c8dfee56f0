"""The demo data: two companies, their people, plans, flags and custom fields."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

PLATFORM_SUBJECT = "platform-operator"


def _flags(*, reports: bool, seats: int, support: str, density: str) -> list[dict[str, Any]]:
    """The flags of a plan: one of each type."""
    theme = {"primary": "#0b5fff", "density": density}
    return [
        {
            "flag_key": key,
            "flag_type": flag_type,
            "default_value": value,
            "description": description,
            "is_locked": is_locked,
        }
        for key, flag_type, value, description, is_locked in (
            ("advanced-reports", "boolean", reports, "Reports by team and by quarter.", False),
            ("seats", "number", seats, "How many people may sign in.", True),
            ("support-channel", "string", support, "How support is reached.", False),
            ("theme", "json", theme, "Colours and spacing of the user interface.", False),
        )
    ]


PRESETS: dict[str, list[dict[str, Any]]] = {
    "starter": _flags(reports=False, seats=5, support="e-mail", density="comfortable"),
    "growth": _flags(reports=True, seats=50, support="chat", density="compact"),
}

TENANTS: list[dict[str, Any]] = [
    {
        "idp_org_id": "org_demo_acme",
        "name": "Acme Robotics",
        "slug": "acme",
        "primary_contact_name": "Ines Okafor",
        "primary_contact_email": "ines.okafor@acme.example",
        "primary_contact_phone": "+1 503 555 0142",
        "mailing_address_line_1": "12 Foundry Street",
        "mailing_city": "Portland",
        "mailing_state": "OR",
        "mailing_zipcode": "97205",
        "mailing_country": "US",
    },
    {
        "idp_org_id": "org_demo_globex",
        "name": "Globex Energy",
        "slug": "globex",
        "primary_contact_name": "Mats Lindqvist",
        "primary_contact_email": "mats.lindqvist@globex.example",
        "primary_contact_phone": "+46 8 555 01 23",
        "mailing_address_line_1": "Kraftvägen 4",
        "mailing_city": "Stockholm",
        "mailing_zipcode": "115 26",
        "mailing_country": "SE",
    },
]

SUBSCRIPTIONS: dict[str, dict[str, Any]] = {
    "org_demo_acme": {
        "bp_subscription_id": "sub_demo_acme",
        "bp_customer_id": "cus_demo_acme",
        "bp_plan_id": "plan_growth_monthly",
        "bp_status": "active",
        "plan_name": "growth",
        "start_date": datetime(2026, 1, 1, tzinfo=UTC),
        "billing_cycle": "monthly",
        "per_cycle_billing_amount": 49_900,
        "billing_address_line_1": "12 Foundry Street",
        "billing_city": "Portland",
        "billing_state": "OR",
        "billing_zip": "97205",
        "billing_country": "US",
        "billing_email": "billing@acme.example",
        "billing_phone": "+1 503 555 0143",
        "billing_contact_name": "Ines Okafor",
        "send_invoice_days_before_due": 14,
    },
    "org_demo_globex": {
        "bp_subscription_id": "sub_demo_globex",
        "bp_customer_id": "cus_demo_globex",
        "bp_plan_id": "plan_starter_annual",
        "bp_status": "trialing",
        "plan_name": "starter",
        "is_free_trial": True,
        "start_date": datetime(2026, 3, 15, tzinfo=UTC),
        "billing_cycle": "annual",
        "per_cycle_billing_amount": 118_800,
        "billing_address_line_1": "Kraftvägen 4",
        "billing_city": "Stockholm",
        "billing_zip": "115 26",
        "billing_country": "SE",
        "billing_email": "faktura@globex.example",
        "billing_contact_name": "Mats Lindqvist",
        "send_invoice_days_before_due": 30,
    },
}

# The last is what `flask seed` names as the tenant's override: one that takes any JSON value.
OVERRIDES: list[dict[str, Any]] = [
    {"flag_key": "advanced-reports", "flag_value": True},
    {"flag_key": "theme", "flag_value": {"primary": "#d6336c", "density": "comfortable"}},
]

PEOPLE: dict[str, dict[str, Any]] = {
    "owner": {
        "first_name": "Ines",
        "last_name": "Okafor",
        "meta_data": {"department": "management", "employee_number": "E-0001", "skills": ["sales"]},
    },
    "admin": {
        "first_name": "Jonas",
        "last_name": "Weber",
        "meta_data": {"department": "engineering", "employee_number": "E-0007", "is_remote": True},
    },
    "billing": {
        "first_name": "Priya",
        "last_name": "Nair",
        "meta_data": {"department": "finance", "hired_on": "2024-02-01"},
    },
    "member": {
        "first_name": "Tomás",
        "last_name": "Herrera",
        "meta_data": {"department": "engineering", "seniority": 3, "skills": ["python", "sql"]},
    },
    "viewer": {"first_name": "Aiko", "last_name": "Mori", "meta_data": {}},
}

# Of users.
CUSTOM_FIELDS: list[dict[str, Any]] = [
    {
        "field_key": "department",
        "label": "Department",
        "field_type": "select",
        "options": ["management", "engineering", "finance", "sales"],
        "is_searchable": True,
    },
    {
        "field_key": "employee_number",
        "label": "Employee number",
        "field_type": "text",
        "is_searchable": True,
    },
    {
        "field_key": "hired_on",
        "label": "Hired on",
        "field_type": "date",
        "is_searchable": True,
    },
    {"field_key": "seniority", "label": "Seniority", "field_type": "integer"},
    {"field_key": "is_remote", "label": "Works remotely", "field_type": "boolean"},
    {
        "field_key": "skills",
        "label": "Skills",
        "field_type": "multi_select",
        "options": ["python", "sql", "sales", "welding"],
    },
]

ARCHIVED_FIELD: dict[str, Any] = {
    "field_key": "cost_center",
    "label": "Cost center",
    "field_type": "text",
    "is_searchable": True,
}
