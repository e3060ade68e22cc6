"""A real kernel to run cells in, and what came of each."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from jupyter_client.manager import KernelManager


@dataclass
class Ran:
    """What a front end saw of one cell."""

    status: str  # "ok" or "error"
    error: dict[str, Any]  # ename, evalue, traceback (without colours) where it is "error"
    stdout: str = ""
    stderr: str = ""
    results: list[dict[str, Any]] = field(default_factory=list)  # MIME bundles of Out[n]
    displays: list[dict[str, Any]] = field(default_factory=list)  # MIME bundles that were displayed
    order: list[str] = field(default_factory=list)  # kinds of messages as they came

    @property
    def value(self):
        """The text of Out[n], None where there is none; more than one is an error."""
        assert len(self.results) <= 1, self.results
        return self.results[0]["text/plain"] if self.results else None

    @property
    def panels(self):
        """The panels that were shown."""
        return [bundle for bundle in self.displays if "data-tensortrace" in bundle.get("text/html", "")]


class Kernel:
    """One kernel; `with Kernel() as kernel: kernel.run(...)`."""

    def __init__(self, python: str = sys.executable) -> None:
        self._manager = KernelManager()
        self._manager.kernel_spec.argv = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]

    def __enter__(self):
        self._manager.start_kernel(stderr=None)
        self._client = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=120)
        return self

    def __exit__(self, *exc):
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)

    def run(self, code: str, during=None, **options) -> Ran:
        """Run a cell to its end. `during(message)` is called with each message that comes while it runs."""
        number = self._client.execute(code, **options)
        return self._collect(number, during)

    def interrupt(self):
        self._manager.interrupt_kernel()

    def evaluate(self, expression: str) -> Any:
        """The value of an expression, by its repr; silent, so that it leaves nothing in the history."""
        number = self._client.execute("", silent=True, user_expressions={"value": expression}, store_history=False)
        reply = self._reply(number)
        self._until_idle(number)
        value = reply["content"]["user_expressions"]["value"]
        assert value["status"] == "ok", value
        return value["data"]["text/plain"]

    def complete(self, code: str) -> list[str]:
        number = self._client.complete(code, len(code))
        return self._reply(number)["content"]["matches"]

    def inspect(self, code: str) -> str:
        number = self._client.inspect(code, len(code))
        return plain(self._reply(number)["content"]["data"].get("text/plain", ""))

    def _reply(self, number):
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            message = self._client.get_shell_msg(timeout=120)
            if message["parent_header"].get("msg_id") == number:
                return message
        raise TimeoutError("the kernel gave no answer")

    def _until_idle(self, number, heard=lambda message: None):
        while True:
            message = self._client.get_iopub_msg(timeout=120)
            if message["parent_header"].get("msg_id") != number:
                continue
            heard(message)
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return

    def _collect(self, number, during):
        ran = Ran("", {})

        def heard(message):
            kind, content = message["msg_type"], message["content"]
            if kind in ("stream", "execute_result", "display_data", "error"):
                ran.order.append(kind)
            if kind == "stream":
                setattr(ran, content["name"], getattr(ran, content["name"]) + plain(content["text"]))
            elif kind == "execute_result":
                ran.results.append(content["data"])
            elif kind == "display_data":
                ran.displays.append(content["data"])
            elif kind == "error":
                ran.error = {**content, "traceback": plain("\n".join(content["traceback"]))}
            if during is not None:
                during(message)

        self._until_idle(number, heard)
        reply = self._reply(number)["content"]
        ran.status = reply["status"]
        if not ran.error and ran.status == "error":  # a usage error is a line on stderr
            ran.error = {**reply, "traceback": ""}
        return ran


def plain(text: str) -> str:
    """Without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
