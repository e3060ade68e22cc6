"""A front end's debugger (debugpy, by the kernel's debug protocol) stops in a traced cell as in a plain one."""

from __future__ import annotations

import time

import pytest

from tests.notebook.kernels import Kernel

pytestmark = pytest.mark.kernel
pytest.importorskip("debugpy")
BODY = "a = torch.ones(2)\nb = a * 2\nc = b + 1\nd = c + 1\nd.tolist()"


class Debugger:
    """What a front end does: ask on the control channel, hear events between the outputs."""

    def __init__(self, kernel):
        self.kernel, self.client, self.number = kernel, kernel._client, 0

    def ask(self, command, **arguments):
        self.number += 1
        content = {"type": "request", "seq": self.number, "command": command, "arguments": arguments}
        message = self.client.session.msg("debug_request", content)
        self.client.control_channel.send(message)
        while True:
            reply = self.client.get_control_msg(timeout=60)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                return reply["content"].get("body")

    def run(self, cell, line):
        """Stop at a line, go one line on, continue; gives where it stood and the cell's value."""
        self.ask(
            "initialize", clientID="test", adapterID="", linesStartAt1=True, columnsStartAt1=True, pathFormat="path"
        )
        self.ask("attach", justMyCode=False)
        path = self.ask("dumpCell", code=cell)["sourcePath"]
        self.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": line}], sourceModified=False)
        self.ask("configurationDone")
        number, stops, value = self.client.execute(cell), [], None
        deadline = time.monotonic() + 100
        while time.monotonic() < deadline:
            message = self.client.get_iopub_msg(timeout=60)
            kind, content = message["msg_type"], message["content"]
            if kind == "debug_event" and content.get("event") == "stopped":
                thread = content["body"]["threadId"]
                stops.append(self.ask("stackTrace", threadId=thread)["stackFrames"][0]["line"])
                self.ask("next" if len(stops) == 1 else "continue", threadId=thread)
            if message["parent_header"].get("msg_id") == number:
                if kind == "execute_result":
                    value = content["data"]["text/plain"]
                if kind == "status" and content["execution_state"] == "idle":
                    break
        self.ask("disconnect", restart=False, terminateDebuggee=False)
        self.kernel._reply(number)
        return stops, value


def test_a_breakpoint_and_a_step():
    with Kernel() as kernel:
        kernel.run("%load_ext tensormagic\nimport torch")
        debugger = Debugger(kernel)
        assert debugger.run("\n" + BODY, 3) == ([3, 4], "[4.0, 4.0]")
        assert debugger.run("%%tensortrace\n" + BODY, 3) == ([3, 4], "[4.0, 4.0]")
        asked = "list(_trace.recording.steps.column('line')), {n.code for n in _trace.recording.notices}"
        lines, said = eval(kernel.evaluate(asked))
        assert lines == [2, 3, 4, 5, 6] and said == {"lines-lost"}
        # Attached, and with nothing to stop at, it takes nobody's place.
        assert kernel.run("%%tensortrace\n" + BODY.replace("a =", "x =  a =")).value == "[4.0, 4.0]"
        assert eval(kernel.evaluate(asked)) == ([2, 3, 4, 5, 6], set())
