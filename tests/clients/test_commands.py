"""``controlplane``, as far as it differs from the generated commands of ``flask``."""

import pytest
from click.testing import CliRunner


@pytest.mark.usefixtures("importable")
def test_an_unknown_command_is_answered_with_where_others_are():
    from controlplane.main import main

    ended = CliRunner().invoke(main, ["console", "link"])

    assert ended.exit_code == 2
    assert "Is it `flask console`, on the server's machine?" in ended.stderr
