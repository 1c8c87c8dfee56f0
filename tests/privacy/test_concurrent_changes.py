"""What another transaction writes about a person while an erasure runs is erased too."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.rewinds.jobs import rewind
from app.users.models import User
from tests import database
from tests.factories import create_member, create_subscription, create_tenant, platform_token
from tests.privacy.test_user_erasure import run_job

CANARY = "canarybird"
WAITING = "SELECT FROM pg_locks WHERE NOT granted HAVING count(DISTINCT pid) >= %s"


@pytest.fixture
def waiting(superuser):
    """Call it to wait until so many transactions wait for a lock."""

    def wait(count):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            superuser.execute(WAITING, [count])
            if superuser.rowcount:
                return
            time.sleep(0.05)
        raise TimeoutError

    return wait


def change_contact(app, api, tenant, user):
    path = f"/v1/tenants/{tenant.id}"
    return api.patch(path, token=platform_token(), json={"primary_contact_phone": CANARY})


def change_billing(app, api, tenant, user):
    subscription = create_subscription(tenant, billing_email=user.email)
    path = f"/v1/billing/subscriptions/{subscription.id}"
    return api.patch(path, token=platform_token(), json={"billing_contact_name": CANARY})


def test_a_rewind_to_when_the_person_was_the_contact(app, api, superuser, dump, waiting):
    """The rewind has written the values, and commits while the erasure waits for it."""
    operator, contact = platform_token(), "primary_contact_name"
    tenant = {
        "name": "T",
        "slug": "t",
        "idp_org_id": "o",
        "primary_contact_email": "ada@example.com",
    }
    tenant = api.post("/v1/tenants", token=operator, json={**tenant, contact: CANARY})
    path = f"/v1/tenants/{tenant.get_json()['data']['id']}"
    person = {"idp_user_id": "ada", "email": "ada@example.com"}
    ada = api.post(f"/v1/users?tenant_id={path[12:]}", token=operator, json=person).get_json()[
        "data"
    ]
    api.sequence()
    to = api.get("/v1/events?limit=1000", token=operator).get_json()["next_cursor"]
    bob = {contact: "Bob", "primary_contact_email": "bob@example.com"}
    assert api.patch(path, token=operator, json=bob).status_code == 200
    body = {"to": to, "dry_run": False, "kinds": ["tenant"]}
    made = api.post(f"{path}/rewind", token=operator, json=body).get_json()["data"]
    assert api.delete(f"/v1/users/{ada['id']}", token=operator).status_code == 202
    api.sequence()
    with ThreadPoolExecutor(2) as threads:
        superuser.execute("BEGIN; LOCK TABLE event_outbox IN SHARE MODE")
        rewound = threads.submit(run_rewind, app, made["id"])
        waiting(1)
        erased = threads.submit(run_job, app)
        waiting(2)
        superuser.execute("COMMIT")
        rewound.result()
        erased.result()

    assert database.rows(User) == []
    assert [line for line in dump().splitlines() if CANARY in line] == []


def run_rewind(app, rewind_id):
    with app.app_context():
        rewind(rewind_id)


@pytest.mark.parametrize("change", [change_contact, change_billing])
def test_a_change_of_a_contact(app, api, superuser, dump, waiting, change):
    """The change has recorded its values, and commits while the erasure waits for the row."""
    tenant = create_tenant(primary_contact_email="ada@example.com")
    create_member(tenant, role="owner")
    ada, _, _ = create_member(tenant, idp_user_id="ada", email="ada@example.com")
    assert api.delete(f"/v1/users/{ada.id}", token=platform_token()).status_code == 202
    with ThreadPoolExecutor(2) as threads:
        superuser.execute("BEGIN; LOCK TABLE event_outbox IN SHARE MODE")
        changed = threads.submit(change, app, api, tenant, ada)
        waiting(1)
        erased = threads.submit(run_job, app)
        waiting(2)
        superuser.execute("COMMIT")

        assert changed.result().status_code == 200
        erased.result()
    assert database.rows(User, id=ada.id) == []
    assert [line for line in dump().splitlines() if CANARY in line] == []
