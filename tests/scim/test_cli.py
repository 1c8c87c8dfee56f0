"""``flask scim``."""

import json


def run(app, *words):
    result = app.test_cli_runner().invoke(args=["scim", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_lists_connections_without_secrets(app, tenant, connection):
    shown = run(app, "connections", "--tenant", tenant.slug, "--json")

    (listed,) = json.loads(shown)
    assert listed["id"] == str(connection[0].id)
    assert connection[0].digest not in shown


def test_shows_the_last_requests_without_values(app, connection, directory):
    directory.add_user("ada@example.com")
    directory.find('userName eq "ada@example.com"')
    directory.post("/Users", {})

    shown = json.loads(run(app, "log", str(connection[0].id), "--json"))

    assert [(one["method"], one["path"], one["status"]) for one in shown] == [
        ("POST", "/Users", 400),
        ("GET", "/Users?filter=userName eq …", 200),
        ("POST", "/Users", 201),
    ]
    assert shown[0]["detail"] == "invalidValue"
