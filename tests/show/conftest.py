"""One browser for the tests of a file, and pages that are closed again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tensormagic.show import handout
from tests.show.browser import Opened, chromium
from tests.show.samples import SAMPLE, Open


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Open]:
    pages: list[Opened] = []

    def open_(view: dict[str, Any] = SAMPLE, **context: Any) -> Opened:
        path = tmp_path / f"page{len(pages)}.html"
        path.write_text(handout.page(view), encoding="utf-8")
        pages.append(Opened(browser, path, **context))
        return pages[-1]

    yield open_
    for page in pages:
        page.close()
