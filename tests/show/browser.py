"""A Chromium for tests of the panel: no network, errors of the page are errors of the test."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A browser. Where there is none the test is skipped, but in CI it fails: there it must have run."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        told = "the panel's tests need Chromium and the Python package playwright"
        if os.environ.get("CI") == "true":
            pytest.fail(told)
        pytest.skip(told)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


def eventually(locator: Any) -> Any:
    """Playwright's assertions on a locator: they wait until they hold."""
    from playwright.sync_api import expect

    return expect(locator)


class Opened:
    """A page with a panel, and what went wrong in it."""

    def __init__(self, browser: Any, path: Path, **context: Any) -> None:
        self.context = browser.new_context(**({"viewport": {"width": 1180, "height": 800}} | context))
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.route(lambda url: not url.startswith("file:"), lambda route: route.abort())
        self.page.goto(path.as_uri())
        self.slider = self.page.get_by_role("slider", name="Step", exact=True)
        self.slider.wait_for(timeout=15_000)
        self.root = self.page.locator(".tt")

    @property
    def step(self) -> int:
        return int(self.slider.input_value())

    def told(self) -> str:
        """What the live region says."""
        return self.page.locator("[aria-live=polite]").text_content()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def close(self) -> None:
        self.context.close()
        assert not self.errors, self.errors
        assert all(url.startswith(("file:", "data:")) for url in self.requests), self.requests
