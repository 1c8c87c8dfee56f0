"""Deliveries as their owners see them: list, send again, recover, test."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import bindparam, select

from app.audit.service import record
from app.core import json_text
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries
from app.core.db.list_conditions import Condition
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change
from app.core.db.tenancy import current_scope
from app.core.db.writes import insert_row
from app.core.errors import Conflict, NotFound
from app.core.json_text import Json
from app.core.observability.metrics import SharedMetric
from app.events.sequencer import DELIVERIES
from app.webhooks.deliveries.models import DeliveryStatus, WebhookDelivery
from app.webhooks.deliveries.statements import RECOVER, RESEND
from app.webhooks.endpoints.models import DisabledReason, WebhookEndpoint
from app.webhooks.endpoints.service import get_endpoint

DAYS = 90  # that deliveries are kept
# The index of deliveries begins with their tenant, which is the endpoint's.
OF_OWNER = WebhookDelivery.tenant_id == (
    select(WebhookEndpoint.tenant_id)
    .where(WebhookEndpoint.id == bindparam("owner_of"))
    .scalar_subquery()
)
MAX_RECOVERED = 1_000  # of deliveries, and of missed events, by one request
ATTEMPTS = SharedMetric(
    "webhook_attempts_total",
    "Attempts of deliveries, and endpoints that the sender has disabled.",
    ["result"],
)


class EndpointInactive(Conflict):
    code = "webhook_endpoint_inactive"
    detail = "This webhook endpoint is not active; set is_active first."


class Recovery(NamedTuple):
    """How many deliveries a recovery has made due."""

    resent: int
    missed: int
    is_complete: bool


def list_deliveries(
    endpoint_id: UUID | str, paging: Paging = FIRST_PAGE, *, status: DeliveryStatus | None = None
) -> Page:
    """One page of an endpoint's deliveries; raises NotFound."""
    equal: dict[str, object] = {"endpoint_id": queries.parse_id(endpoint_id, WebhookEndpoint)}
    if status is not None:
        equal["status"] = status.value
    owned = Condition(OF_OWNER, {"owner_of": equal["endpoint_id"]})
    page = paginate(WebhookDelivery, paging, owned, equal=equal, without=("body",))
    if not page.items:
        get_endpoint(endpoint_id)
    return page


def list_failed(paging: Paging = FIRST_PAGE) -> Page:
    """One page of the failed deliveries of all tenants."""
    failed = {"status": DeliveryStatus.FAILED.value}
    return paginate(WebhookDelivery, paging, equal=failed, without=("body",))


def get_delivery(delivery_id: UUID | str) -> WebhookDelivery:
    """The delivery; raises NotFound, also where its endpoint was deleted."""
    delivery = queries.find_row(WebhookDelivery, id=queries.parse_id(delivery_id, WebhookDelivery))
    if delivery is None or current_scope().tenant_id not in (None, delivery.tenant_id):
        raise NotFound.of(WebhookDelivery)
    get_endpoint(delivery.endpoint_id)
    return delivery


def resend(delivery_id: UUID | str, *, actor: Actor) -> WebhookDelivery:
    """Make a delivery due now, with all its attempts; a delivery that is being sent is unchanged.

    Raises NotFound and EndpointInactive.
    """
    delivery = get_delivery(delivery_id)
    endpoint = _active(get_endpoint(delivery.endpoint_id))
    change = Change({}, {"delivery_id": delivery.id, "type": delivery.type})
    record("webhook_endpoint.delivery_resent", endpoint, change, actor=actor)
    RESEND.execute(tenant_id=str(delivery.tenant_id), id=str(delivery.id))
    DELIVERIES.notify()
    return get_delivery(delivery.id)


def recover(endpoint_id: UUID | str, since: datetime, *, actor: Actor) -> Recovery:
    """Make due now what an endpoint has missed since a time.

    That are failed deliveries, those that wait for another attempt, and events without a delivery,
    none older than the endpoint. At most :data:`MAX_RECOVERED` of each. Raises NotFound and EndpointInactive.
    """
    endpoint = _active(queries.lock_row(WebhookEndpoint, endpoint_id))
    since = max(since, utcnow() - timedelta(days=DAYS))
    found = RECOVER.one(
        tenant_id=str(endpoint.tenant_id),
        id=str(endpoint.id),
        since=since,
        first_id=str(_first_id(since)),
        most=MAX_RECOVERED,
    )
    change = Change({}, {"since": since, "resent": found.resent, "missed": found.missed})
    record("webhook_endpoint.recovered", endpoint, change, actor=actor)
    DELIVERIES.notify()
    is_complete = max(found.resent, found.missed) < MAX_RECOVERED
    return Recovery(found.resent, found.missed, is_complete)


def send_test(
    endpoint_id: UUID | str, event_type: str, event: dict[str, Json], *, actor: Actor
) -> WebhookDelivery:
    """Deliver an example event, by one attempt. Raises NotFound and EndpointInactive.

    An endpoint that was created inactive gets it too, to be tested first.
    """
    endpoint = queries.lock_row(WebhookEndpoint, endpoint_id)
    if endpoint.disabled_reason != DisabledReason.UNTESTED:
        _active(endpoint)
    event_id = uuid4()
    body = json_text.dumps_text({**event, "id": f"evt_{event_id.hex}", "timestamp": utcnow()})
    values = {
        "tenant_id": endpoint.tenant_id,
        "endpoint_id": endpoint.id,
        "event_id": event_id,
        "type": event_type,
        "body": body,
    }
    delivery = insert_row(WebhookDelivery, values)
    change = Change({}, {"delivery_id": delivery.id, "type": event_type})
    record("webhook_endpoint.tested", endpoint, change, actor=actor)
    DELIVERIES.notify()
    return delivery


def _active(endpoint: WebhookEndpoint) -> WebhookEndpoint:
    if not endpoint.is_active:
        raise EndpointInactive
    return endpoint


def _first_id(moment: datetime) -> UUID:
    """The least UUIDv7 of the second before a moment; the clocks that made ids may differ."""
    milliseconds = max(0, int((moment.timestamp() - 60) * 1000))
    return UUID(int=milliseconds << 80)
