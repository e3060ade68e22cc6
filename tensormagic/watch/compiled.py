"""`torch.compile` beside a trace: compiled code runs as it would without us, unseen, and a notice says so.

Dynamo looks into every function mode that is active, bakes it into what it compiles and checks for it at each call; a
mode of ours would break graphs, warn and compile anew. So from the moment that a compiled callable begins until it is
done, the recorder is away: its mode off the stack, the engine's entry as torch made it, the lines unheard.

Every compiled callable goes through one name of Dynamo's when it begins and when it ends (`private.COMPILE_GATE`).
`Compiled` stands in for it for the time of the cell. Dynamo is a large module that is only loaded when somebody
compiles, so a finder waits for that, and loads nothing itself.
"""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Callable
from threading import get_ident
from types import CodeType, ModuleType
from typing import Any

from tensormagic.watch import private
from tensormagic.watch.clock import Clock


class Compiled:
    """Notices when compiled code begins and ends on the thread that called `start`.

    Args:
        clock: takes the notices.
        leave: takes the recorder away; its answer is given to `come_back`.
        come_back: puts it in place again.
    """

    def __init__(self, clock: Clock, leave: Callable[[], Any], come_back: Callable[[Any], None]) -> None:
        self.clock, self.leave, self.come_back = clock, leave, come_back
        self._module: ModuleType | None = None
        self._original: Any = None
        self._standin: Any = None
        self._finder: _Finder | None = None
        self._frame = 0  # id of the frame of Dynamo's in which compiled code began, while it runs
        self._thread = 0

    def start(self) -> None:
        """Stand in for the gate, now or when Dynamo is loaded."""
        self._thread = get_ident()
        module = sys.modules.get(private.COMPILE_MODULE)
        if module is not None and private.has_compile_gate(module):
            self._cover(module)
        elif module is None:
            self._finder = _Finder(self._loaded)
            sys.meta_path.insert(0, self._finder)

    def stop(self) -> None:
        """Put back what was there."""
        finder, self._finder = self._finder, None
        if finder is not None and finder in sys.meta_path:
            sys.meta_path.remove(finder)
        module, self._module = self._module, None
        if module is not None and getattr(module, private.COMPILE_GATE, None) is self._standin:
            setattr(module, private.COMPILE_GATE, self._original)
        self._original = self._standin = None
        self._frame = 0

    def _loaded(self, module: ModuleType) -> None:
        try:
            if self._finder is None:
                return  # the trace has ended meanwhile
            if private.has_compile_gate(module):
                self._cover(module)
            else:
                self.clock.notice("no-compile-gate")
        except Exception as fault:
            self._fail(fault)

    def _cover(self, module: ModuleType) -> None:
        private.skip_in_dynamo(module, _codes_of_ours())
        self._module, self._original = module, getattr(module, private.COMPILE_GATE)
        self._standin = self._make(self._original)
        setattr(module, private.COMPILE_GATE, self._standin)

    def _make(self, original: Any) -> Any:
        compiled = self
        away: list[Any] = []

        def gate(callback: Any) -> Any:
            # The same frame begins and ends; Dynamo calls this at other places, too, while it compiles.
            if compiled._module is None or get_ident() != compiled._thread:
                return original(callback)
            frame = sys._getframe(1)
            if callable(callback) and not compiled._frame:
                try:
                    away.append(compiled.leave())
                    compiled._frame = id(frame)
                    compiled.clock.notice("compiled", name := private.compiled_name(frame), name=name)
                except Exception as fault:
                    compiled._fail(fault)
                return original(callback)
            prior = original(callback)
            if id(frame) == compiled._frame:
                compiled._frame = 0
                try:
                    compiled.come_back(away.pop())
                except Exception as fault:
                    compiled._fail(fault)
            return prior

        return gate

    def _fail(self, fault: Exception) -> None:
        self.clock.fault("compiled", fault)


class _Finder:
    """Finds nothing; says when Dynamo's module has been loaded."""

    def __init__(self, loaded: Callable[[ModuleType], None]) -> None:
        self._loaded = loaded

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != private.COMPILE_MODULE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        loader = getattr(spec, "loader", None)
        if loader is None or not hasattr(loader, "__dict__"):
            return None
        execute, loaded = loader.exec_module, self._loaded

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module  # the loader is again as it was
            execute(module)
            loaded(module)

        loader.exec_module = exec_module
        return spec


def _codes_of_ours() -> list[CodeType]:
    """The code of every function of the watchers: some run in the middle of compiled code (a weak reference calls)."""
    found: dict[int, CodeType] = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("tensormagic.watch"):
            for value in list(vars(module).values()):
                members = vars(value).values() if isinstance(value, type) else (value,)
                for member in members:
                    function = getattr(member, "fget", None) or getattr(member, "__func__", None) or member
                    code = getattr(function, "__code__", None)
                    if isinstance(code, CodeType) and "tensormagic" in code.co_filename:
                        _add_with_inner(code, found)
    return list(found.values())


def _add_with_inner(code: CodeType, found: dict[int, CodeType]) -> None:
    if id(code) not in found:
        found[id(code)] = code
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                _add_with_inner(constant, found)
