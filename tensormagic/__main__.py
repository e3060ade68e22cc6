"""`python -m tensormagic script.py -o handout.html`: run a script and save what happened to memory and gradients."""

from __future__ import annotations

import argparse
import linecache
import sys
import traceback
from pathlib import Path
from typing import Any


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tensormagic", description=__doc__)
    parser.add_argument("script", type=Path, help="the script to run; what follows it is its own sys.argv")
    parser.add_argument("-o", "--output", type=Path, help="save as .html, .json, .json.gz, .png or .svg")
    parser.add_argument("--values", type=int, default=64, help="tensors of at most so many elements value by value")
    parser.add_argument("--max-steps", type=int, default=100_000, help="executed lines of which a record is kept")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Run the script as `__main__`, print the summary, save.

    Returns:
        The script's own exit status; 1 where it raised, 2 where it could not be read.
    """
    options = _arguments(sys.argv[1:] if argv is None else argv)
    rest = list(options.arguments)
    if options.output is None and "-o" in rest:  # `script.py -o out.html`: argparse gives all after the script to it
        at = rest.index("-o")
        if at + 1 < len(rest):
            options.output = Path(rest[at + 1])
            del rest[at : at + 2]
    try:
        source = options.script.read_text(encoding="utf-8")
    except OSError as error:
        print(f"python -m tensormagic: cannot read {options.script}: {error.strerror}", file=sys.stderr)
        return 2
    failure, recording = _run(options, source, rest)
    from tensormagic.tracing import Trace

    trace = Trace(recording)
    print(trace.summary())
    if options.output is not None:
        trace.save(options.output)
        print(f"saved {options.output}")
    if isinstance(failure, SystemExit):
        return failure.code if isinstance(failure.code, int) else int(failure.code is not None)
    if failure is not None:
        traceback.print_exception(failure)
        return 1
    return 0


def _run(options: argparse.Namespace, source: str, rest: list[str]) -> tuple[BaseException | None, Any]:
    from tensormagic.watch.errors import clean
    from tensormagic.watch.options import Options
    from tensormagic.watch.watch import make_watch, stopped

    filename = str(options.script)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": "__main__", "__file__": filename}
    sys.argv = [filename, *rest]
    sys.path.insert(0, str(options.script.resolve().parent))
    watch = make_watch(
        namespace, source, filename, Options(values=options.values, max_steps=options.max_steps), options.script.name
    )
    failure: BaseException | None = None
    try:
        code = compile(source, filename, "exec", dont_inherit=True)
        watch.start()
        exec(code, namespace)
    except BaseException as error:
        failure = error
    recording, failure = stopped(watch, failure)
    if failure is not None:
        clean(failure, recording)
        failure.__traceback__ = _from_script(failure, filename)
    return failure, recording


def _from_script(error: BaseException, filename: str) -> Any:
    """The traceback from the script's own first frame on."""
    entry = error.__traceback__
    while entry is not None and entry.tb_frame.f_code.co_filename != filename:
        entry = entry.tb_next
    return entry


if __name__ == "__main__":
    raise SystemExit(main())
