"""The pages of docs/reference equal what the code generates."""

import pytest

from app.dev.reference.pages import FOLDER, render_all

PAGES = ("commands.md", "configuration.md", "endpoints.md", "errors.md", "event-types.md")


class TestReference:
    @pytest.mark.parametrize("name", PAGES)
    def test_a_page_equals_what_the_code_generates(self, app, name):
        generated = render_all(app)[name]

        assert FOLDER.joinpath(name).read_text() == generated, "run: python -m app.dev.reference"

    def test_every_generated_page_is_compared(self, app):
        assert tuple(sorted(render_all(app))) == PAGES
