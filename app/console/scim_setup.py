"""How each directory is set up for SCIM: where to go, what to paste, and what to do then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

BASE_URL, TOKEN = "base URL", "token"  # stand for the service's address and the connection's token

ONELOGIN_TEMPLATE = """{
  "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
  "userName": "{$parameters.scimusername}",
  "name": {"givenName": "{$user.firstname}", "familyName": "{$user.lastname}"},
  "emails": [{"value": "{$user.email}", "type": "work", "primary": true}]
}"""


@dataclass(frozen=True)
class Setup:
    """The steps in the directory, in its own words.

    ``values`` are its fields with what is pasted into them, ``choices`` those with what is chosen.
    """

    name: str
    open: str
    values: Sequence[tuple[str, str]]
    then: Sequence[str]
    choices: Sequence[tuple[str, str]] = ()

    def filled(self, base_url: str, token: str) -> list[tuple[str, str]]:
        """The fields with what to paste into them; an empty token leaves its place open."""
        known = {BASE_URL: base_url, TOKEN: token}
        return [(label, known.get(value, value)) for label, value in self.values]


SETUPS = {
    "okta": Setup(
        "Okta",
        "Open the application (SAML or SWA) in Okta's Admin Console. On the tab General, set"
        " Provisioning to SCIM and save. Then open Provisioning, Integration, Edit.",
        (
            ("SCIM connector base URL", BASE_URL),
            ("Unique identifier field for users", "userName"),
            ("Authorization: Bearer", TOKEN),
        ),
        (
            "Test Connector Configuration, and save.",
            "Under Provisioning, To App, enable Create Users, Update User Attributes and"
            " Deactivate Users.",
            "Assign people or groups on the tab Assignments. Push the groups that give roles on"
            " the tab Push Groups.",
        ),
        choices=(
            (
                "Supported provisioning actions",
                "Push New Users, Push Profile Updates, Push Groups",
            ),
            ("Authentication Mode", "HTTP Header"),
        ),
    ),
    "entra": Setup(
        "Entra ID",
        "Open Enterprise applications in the Entra admin center. Create an application of your own"
        " (non-gallery), or open the one you have. Then open Provisioning, mode Automatic,"
        " Admin Credentials.",
        (("Tenant URL", BASE_URL), ("Secret Token", TOKEN)),
        (
            "Test Connection, and save.",
            "Under Mappings, Provision Microsoft Entra ID Users, map objectId to externalId in place"
            " of mailNickname.",
            "Assign people and groups under Users and groups, and start the provisioning. Entra ID"
            " sends changes about every 40 minutes; Provision on demand sends one person at once.",
        ),
    ),
    "onelogin": Setup(
        "OneLogin",
        "Under Applications, Add App, add “SCIM Provisioner with SAML (SCIM v2 Core)”. Open its"
        " Configuration.",
        (
            ("SCIM Base URL", BASE_URL),
            ("SCIM JSON Template", ONELOGIN_TEMPLATE),
            ("SCIM Bearer Token", TOKEN),
        ),
        (
            "Save, then press Enable at API Connection.",
            "Under Parameters, set the SCIM username to Email.",
            "Under Provisioning, enable provisioning, and choose which changes need an approval.",
            "Give the application to people under Access. Groups are sent once a rule sets them.",
        ),
    ),
    "google": Setup(
        "Google Workspace",
        "Open Apps, Web and mobile apps, and the SAML application in the Admin console. Then open"
        " Autoprovisioning, Configure. Google offers it for the applications of its catalogue.",
        (("Access token", TOKEN), ("Endpoint URL", BASE_URL)),
        (
            "Keep the mapping of userName to the primary e-mail address.",
            "Choose the organizational units or groups that are provisioned, and what happens when"
            " a person leaves: suspending ends the membership, deleting does too.",
            "Turn autoprovisioning on. Google sends no groups: everybody gets the connection's role"
            " of new people.",
        ),
    ),
    "jumpcloud": Setup(
        "JumpCloud",
        "Open SSO Applications and the custom application in the Admin Portal. Then open Identity"
        " Management, API type SCIM API.",
        (("Base URL", BASE_URL), ("Token Key", TOKEN)),
        (
            "Test Connection: JumpCloud creates a user and a group, and deletes both again.",
            "Enable the management of user groups if groups give roles. Activate, and save.",
            "Choose the groups of people on the tab User Groups.",
        ),
        choices=(
            ("SCIM Version", "SCIM 2.0"),
            ("Test User Email", "an address that no person has yet"),
        ),
    ),
    "generic": Setup(
        "another",
        "Open the provisioning of the directory, and choose SCIM 2.0.",
        (("Base URL", BASE_URL), ("Token", TOKEN)),
        (
            "Map userName to the e-mail address or login, and externalId to an id that never"
            " changes.",
            "A directory with OAuth client credentials asks for its tokens at /scim/oauth/token: the"
            " client id is the connection's id, the client secret is the token.",
        ),
        choices=(("Authentication", "a bearer token in the header Authorization"),),
    ),
}
"""The instructions of each provider that a connection can name."""
