"""The trial of a connection; /scim itself is no part of the interface below /v1."""

from __future__ import annotations

from app.auth.guard import requires
from app.auth.permissions import Permission
from app.core.http.blueprint import Blueprint
from app.scim import endpoints, trial
from app.scim.schemas import ScimTestSchema

blp = Blueprint(
    "scim_connection_tests",
    __name__,
    url_prefix="/v1/scim-connections",
    description="Trials of connections.",
)
BLUEPRINTS = (blp,)
PROTOCOLS = (endpoints.blp,)


@blp.post("/<connection_id>/test")
@requires(Permission.SCIM_WRITE)
@blp.response(200, ScimTestSchema)
def test(connection_id: str) -> dict[str, object]:
    """Try a SCIM connection with what a directory does to a user and a group.

    The requests are rolled back: nothing remains and no event is sent. The network and the
    directory's own token are not tried. A connection that is `testing` is tried as if it were
    `active`, and stays `testing`.
    """
    steps = trial.run(connection_id)
    return {"has_passed": all(one.result == "ok" for one in steps), "steps": steps}
