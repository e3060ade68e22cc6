"""The same output in JupyterLab and Notebook 7, trusted or not, with a kernel or without, and converted: all offline."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbclient
import nbconvert
import nbformat
import pytest

from tests.show.browser import eventually

LESSON = """%%tensortrace
x = torch.tensor([1., 2., 3., 4.], requires_grad=True)
d = x.detach()
v = d[:2]
v *= 10
(x ** 2).sum().backward()"""
TAB = """import ipywidgets, tensormagic
inner = tensormagic.run("p = torch.zeros(2)\\nq = p[:1]\\nq += 1\\n", {"torch": torch}).panel()
ipywidgets.Tab([ipywidgets.VBox([inner])])"""
SIZE = {"width": 1300, "height": 1200}


def notebook() -> Any:
    made = nbformat.v4.new_notebook()
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cells = ["%load_ext tensormagic\nimport torch", LESSON, TAB]
    made.cells = [nbformat.v4.new_code_cell(source, id=f"cell{n}") for n, source in enumerate(cells)]
    return made


@pytest.fixture(scope="module")
def executed() -> Any:
    """The notebook after it was run, with the state of its widgets."""
    made = notebook()
    nbclient.NotebookClient(made, timeout=120, store_widget_state=True).execute()
    return made


class Page:
    """A page that reaches this machine alone."""

    def __init__(self, browser: Any, address: str) -> None:
        self.context = browser.new_context(viewport=SIZE)
        self.page = self.context.new_page()
        self.page.route(
            lambda url: not url.startswith(("file:", "http://127.0.0.1", "data:")), lambda route: route.abort()
        )
        self.page.goto(address)

    @property
    def slider(self) -> Any:
        return self.page.get_by_role("slider", name="Step", exact=True)


def steps(page: Page, which: int = 0) -> None:
    """The panel steps with the keyboard."""
    slider = page.slider.nth(which)
    slider.wait_for(timeout=60_000)
    slider.focus()
    page.page.keyboard.press("Home")
    page.page.keyboard.press("ArrowRight")
    eventually(slider).to_have_value("1")


@pytest.mark.parametrize("state", [False, True])
def test_nbconvert_with_and_without_widget_state(browser: Any, executed: Any, tmp_path: Path, state: bool) -> None:
    copy = nbformat.from_dict(executed)
    assert copy.metadata.widgets
    if not state:
        copy.metadata = {key: value for key, value in copy.metadata.items() if key != "widgets"}
    path = tmp_path / "lesson.html"
    path.write_text(nbconvert.HTMLExporter().from_notebook_node(copy)[0], encoding="utf-8")
    page = Page(browser, path.as_uri())
    steps(page)
    assert page.page.locator(".ln.now .src").first.text_content() == "d = x.detach()"
    page.context.close()


SETTINGS = "@jupyterlab/apputils-extension/themes.jupyterlab-settings"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, executed: Any) -> Iterator[str]:
    """A Jupyter server of its own, dark, without network: `run.ipynb` is untrusted and was run, `new.ipynb` was not."""
    home = tmp_path_factory.mktemp("jupyter")
    work = home / "work"
    work.mkdir()
    nbformat.write(executed, work / "run.ipynb")
    nbformat.write(notebook(), work / "new.ipynb")
    settings = home / "settings" / SETTINGS
    settings.parent.mkdir(parents=True)
    settings.write_text('{"theme": "JupyterLab Dark"}', encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    own = {
        "JUPYTER_CONFIG_DIR": str(home / "config"), "JUPYTER_RUNTIME_DIR": str(home / "runtime"), "JUPYTER_DATA_DIR": str(home / "data"),
        "IPYTHONDIR": str(home / "ipython"), "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"), "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }  # fmt: skip
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}", "--IdentityProvider.token=",
        f"--ServerApp.root_dir={work}", "--ServerApp.disable_check_xsrf=True", "--LabApp.news_url=", "--LanguageServerManager.autodetect=False",
    ]  # fmt: skip
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(command, env=os.environ | own, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"{address}/api", timeout=2).read()
                break
            except OSError:
                assert server.poll() is None, (home / "log").read_text()
                time.sleep(0.25)
        yield address
        stop_kernels(address)
    finally:
        server.terminate()  # it stops its kernels first
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait(15)


def asked(address: str, method: str = "GET", data: Any = None) -> Any:
    """The answer of the server's own interface."""
    body = None if data is None else json.dumps(data).encode()
    with urllib.request.urlopen(urllib.request.Request(address, body, method=method), timeout=30) as answer:
        return json.loads(answer.read() or "null")


def kernel_for(served: str, name: str) -> None:
    """Starts the kernel of a notebook, so that no dialog asks for one."""
    session = {"path": name, "name": name, "type": "notebook", "kernel": {"name": "python3"}}
    asked(f"{served}/api/sessions", "POST", session)


def stop_kernels(served: str) -> None:
    for session in asked(f"{served}/api/sessions"):
        asked(f"{served}/api/sessions/{session['id']}", "DELETE")


def run_all(page: Page, served: str) -> None:
    """Run all cells once the page has joined its kernel; before that it would ask which kernel to take."""
    for _ in range(300):
        if any(
            kernel["connections"] and kernel["execution_state"] == "idle" for kernel in asked(f"{served}/api/kernels")
        ):
            break
        page.page.wait_for_timeout(200)
    page.page.wait_for_timeout(500)
    page.page.get_by_role("menuitem", name="Run", exact=True).first.click()
    page.page.get_by_text("Run All Cells", exact=True).click()


def test_an_untrusted_notebook_without_a_kernel_shows_picture_and_table(browser: Any, served: str) -> None:
    page = Page(browser, f"{served}/lab/tree/run.ipynb")
    picture = page.page.locator(".jp-OutputArea img[alt*='tensor']").first
    picture.wait_for(timeout=60_000)
    assert picture.evaluate("node => node.naturalWidth") > 500
    assert page.page.locator(".jp-OutputArea table").first.inner_text().count("x.detach()") >= 1
    assert page.slider.count() == 0
    page.context.close()


def test_jupyterlab_live_in_the_dark_in_a_tab_and_reopened(browser: Any, served: str) -> None:
    kernel_for(served, "new.ipynb")
    page = Page(browser, f"{served}/lab/tree/new.ipynb")
    page.page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)
    run_all(page, served)
    eventually(page.slider).to_have_count(2, timeout=60_000)  # the other stands in the Tab and its VBox
    steps(page)
    assert page.page.locator("[data-live]").first.get_attribute("data-theme") == "dark"
    # JupyterLab takes the focus for itself once more when the last of the cells has ended.
    eventually(page.page.locator(".jp-InputArea-prompt")).to_have_text(["[1]:", "[2]:", "[3]:"], timeout=60_000)
    page.page.wait_for_timeout(500)
    cells = page.page.locator(".jp-Notebook .jp-Cell").count()
    for target in (page.slider.first, page.page.get_by_role("button", name="Next step").first):
        target.focus()
        for key in ("b", "d", "d", "x", "a"):
            page.page.keyboard.press(key)
            assert page.page.evaluate("document.activeElement.shadowRoot !== null"), (
                f"the focus went elsewhere at {key}"
            )
    assert page.page.locator(".jp-Notebook .jp-Cell").count() == cells == 3
    steps(page, 1)
    page.page.keyboard.press("Control+s")
    eventually(page.page.locator(".jp-mod-dirty")).to_have_count(0, timeout=20_000)
    page.context.close()
    stop_kernels(served)
    again = Page(browser, f"{served}/lab/tree/new.ipynb")  # trusted: it was run and saved here
    steps(again)
    again.context.close()


def test_notebook_7_steps(browser: Any, served: str) -> None:
    stop_kernels(served)
    kernel_for(served, "new.ipynb")
    page = Page(browser, f"{served}/notebooks/new.ipynb")
    page.page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)
    run_all(page, served)
    steps(page)
    page.context.close()
