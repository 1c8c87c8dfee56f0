"""20,000 interleaved requests of 50 tenants by 16 threads on a pool of 2 connections."""

from tests import factories
from tests.hostile import isolation
from tests.hostile.installation import installation
from tests.soak.verdict import Verdict

REQUESTS, TENANTS = 20_000, 50


def prove(deadline: float) -> Verdict:
    """No row of another tenant is ever shown or written."""
    with installation() as service:
        factories.bind(service.app)
        report = isolation.prove(service, requests=REQUESTS, tenants=TENANTS, deadline=deadline)
    faults = [f"foreign: {found}" for found in report.foreign]
    faults += [f"strange: {found}" for found in report.strange]
    if report.requests < REQUESTS:
        faults.append(f"only {report.requests} of {REQUESTS} requests in the time there was")
    return Verdict(str(report), faults)
