"""What the fields of app/core cost: a full update body loaded by them and by plain marshmallow.

Run ``python -m benchmarks.schema_load``; it prints one ratio per body and exits 1 where the one
of the whole body is over 1.5.
"""

from __future__ import annotations

import statistics
import sys
import timeit
from collections.abc import Callable
from typing import Any

import marshmallow as ma
from marshmallow import fields as plain
from marshmallow import validate

from app.core.validation import fields
from app.core.validation.schemas import Schema

LIMIT = 1.5
ROUNDS, LOADS = 40, 500
CYCLES = ("weekly", "monthly", "quarterly", "semiannual", "annual")

BODY = {
    "bp_customer_id": "cus_9s6XKzkNRiz8i3",
    "bp_plan_id": "plan_growth_monthly",
    "bp_status": "active",
    "plan_name": "Growth",
    "is_free_trial": False,
    "start_date": "2024-01-15T10:30:00+02:00",
    "auto_renew": True,
    "billing_cycle": "annual",
    "per_cycle_billing_amount": 4999,
    "billing_address_line_1": "1 Main Street",
    "billing_city": "Springfield",
    "billing_state": "IL",
    "billing_zip": "62701",
    "billing_country": "US",
    "billing_email": "ap@acme-corp.com",
    "billing_phone": "+1 217 555 0100",
    "billing_contact_name": "Ada Lovelace",
    "send_invoice_days_before_due": 14,
    "send_email_receipts": True,
    "send_paper_receipts": False,
}
WITHOUT_EMAIL = {name: value for name, value in BODY.items() if name != "billing_email"}


class Ours(Schema):
    """The fields of SubscriptionUpdate."""

    bp_customer_id = fields.Str()
    bp_plan_id = fields.Str()
    bp_status = fields.Str()
    plan_name = fields.Str(min_length=1, max_length=255)
    is_free_trial = fields.Bool()
    start_date = fields.AwareDateTime()
    auto_renew = fields.Bool()
    billing_cycle = fields.Literal(*CYCLES)
    per_cycle_billing_amount = fields.Int(ge=0)
    billing_address_line_1 = fields.Str()
    billing_city = fields.Str()
    billing_state = fields.Str()
    billing_zip = fields.Str()
    billing_country = fields.Str()
    billing_email = fields.Email()
    billing_phone = fields.Str()
    billing_contact_name = fields.Str(max_length=255)
    send_invoice_days_before_due = fields.Int(ge=0, le=365)
    send_email_receipts = fields.Bool()
    send_paper_receipts = fields.Bool()


class Plain(ma.Schema):
    """The same with marshmallow's own fields and validators."""

    bp_customer_id = plain.String()
    bp_plan_id = plain.String()
    bp_status = plain.String()
    plan_name = plain.String(validate=validate.Length(min=1, max=255))
    is_free_trial = plain.Boolean()
    start_date = plain.AwareDateTime()
    auto_renew = plain.Boolean()
    billing_cycle = plain.String(validate=validate.OneOf(CYCLES))
    per_cycle_billing_amount = plain.Integer(validate=validate.Range(min=0))
    billing_address_line_1 = plain.String()
    billing_city = plain.String()
    billing_state = plain.String()
    billing_zip = plain.String()
    billing_country = plain.String()
    billing_email = plain.Email()
    billing_phone = plain.String()
    billing_contact_name = plain.String(validate=validate.Length(max=255))
    send_invoice_days_before_due = plain.Integer(validate=validate.Range(min=0, max=365))
    send_email_receipts = plain.Boolean()
    send_paper_receipts = plain.Boolean()


def measure(body: dict[str, Any]) -> tuple[float, float]:
    """Median microseconds of one load by our fields and by plain ones, measured in turns."""
    ours, others = Ours().load, Plain().load
    samples = [(_microseconds(ours, body), _microseconds(others, body)) for _ in range(ROUNDS)]
    return (
        statistics.median(sample[0] for sample in samples),
        statistics.median(sample[1] for sample in samples),
    )


def _microseconds(load: Callable[[Any], Any], body: dict[str, Any]) -> float:
    return timeit.timeit(lambda: load(body), number=LOADS) / LOADS * 1e6


def main() -> int:
    """Print the ratios; 1 where the whole body's is over the limit."""
    whole = 0.0
    for name, body in (("20 fields", BODY), ("without the e-mail address", WITHOUT_EMAIL)):
        ours, others = measure(body)
        whole = whole or ours / others
        print(f"{name}: {ours:.1f} µs, plain {others:.1f} µs, ratio {ours / others:.2f}")
    return int(whole > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
