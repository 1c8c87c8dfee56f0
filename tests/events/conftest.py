"""What the tests of events share."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from flask import Flask
from psycopg2.extensions import cursor

from app.dev.engines.instance import Instance
from app.dev.engines.postgres import connect


@pytest.fixture
def superuser(app: Flask, instance: Instance) -> Iterator[cursor]:
    """May change events, which the application's role may not."""
    with closing(connect(instance)) as session, session.cursor() as opened:
        yield opened
