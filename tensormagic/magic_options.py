"""The options of `%%tensortrace`: said once, parsed, completed, and explained when they are wrong."""

from __future__ import annotations

import argparse
import difflib
import keyword
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments

from tensormagic.watch.options import Options

DEFAULT_NAME = "_trace"
ENDINGS = (".html", ".json", ".json.gz", ".png", ".svg")
_TOKEN = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[^\s"'])+)""")
_QUOTED = re.compile(r"""(["'])(.*?)\1""")


@dataclass(frozen=True)
class Settings:
    """What the user asked for.

    Args:
        name: the variable that will hold the trace; None: the default one.
        save: file to save the trace to, None for none.
        panel: show the panel or the text at all.
        text: print the summary in place of the panel.
        bounds: options of the recorder that were given.
    """

    name: str | None = None
    save: str | None = None
    panel: bool = True
    text: bool = False
    bounds: tuple[tuple[str, Any], ...] = ()

    def options(self) -> Options:
        """The recorder's options."""
        return Options(**dict(self.bounds))


# ---- what each value may be --------------------------------------------------------------------------------------


def _count(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"\d[\d_]*", text) or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return int(text)

    return parse


def _variable(text: str) -> str:
    if not text.isidentifier() or keyword.iskeyword(text):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be the name of a variable")
    return text


def _variables(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    wrong = [name for name in names if not name.isidentifier()]
    if wrong or not names:
        raise argparse.ArgumentTypeError(
            f"{(wrong or [text])[0]!r} is not the name of a variable: write names with commas, as in w,loss"
        )
    return names


def _target(text: str) -> str:
    path = Path(text).expanduser()
    if not any(path.name.endswith(ending) and path.name != ending for ending in ENDINGS):
        raise argparse.ArgumentTypeError(f"{text!r} should end in one of {', '.join(ENDINGS)}")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {str(path.parent)!r} to save {path.name!r} in")
    return str(path)


_BOUNDS = ("values", "max_steps", "depth", "watch")
_DEFAULTS = Options()
_ARGUMENTS = (
    argument("--name", type=_variable, metavar="NAME",
             help=f"keep the trace in this variable (default: {DEFAULT_NAME})"),
    argument("--save", type=_target, metavar="FILE", help=f"also save it; the ending says how: {', '.join(ENDINGS)}"),
    argument("--values", type=_count(0), metavar="N",
             help=f"record tensors of up to N elements value by value (default: {_DEFAULTS.values})"),
    argument("--max-steps", type=_count(1), metavar="N",
             help=f"keep a record of at most N steps (default: {_DEFAULTS.max_steps})"),
    argument("--depth", type=_count(0), metavar="N",
             help=f"follow names N deep into attributes, items and modules (default: {_DEFAULTS.depth})"),
    argument("--watch", type=_variables, metavar="NAMES", help="follow only these variables: --watch w,loss"),
    argument("--no-panel", action="store_true", help="record, show nothing"),
    argument("--text", action="store_true", help="print a summary in place of the panel"),
)  # fmt: skip


def with_options(magic: Any) -> Any:
    """Decorate a magic with every option; its docstring becomes the help."""
    for one in reversed(_ARGUMENTS):
        magic = one(magic)
    return magic_arguments()(magic)


# ---- parsing -----------------------------------------------------------------------------------------------------


def _takes_value(magic: Any) -> dict[str, bool]:
    """Each option, and whether a value follows it."""
    return {text: action.nargs != 0 for action in magic.parser._actions for text in action.option_strings}


def parse(magic: Any, line: str) -> tuple[Settings, str]:
    """Options at the start of `line`, and the rest of it, as it was written.

    The rest is not parsed: it may be a statement, whose quotes and spaces are the user's.

    Raises:
        UsageError: an option that there is not (the nearest one is named), or a value that it cannot have.
    """
    known = _takes_value(magic)
    argv: list[str] = []
    position = 0
    while (found := _TOKEN.match(line, position)) and found[1].startswith("--"):
        option, equals, value = found[1].partition("=")
        position = found.end()
        if option == "--":
            break
        if option not in known:
            raise UsageError(_unknown(option, known))
        if known[option] and not equals:
            following = _TOKEN.match(line, position)
            if following is None or following[1].startswith(("--", "#")):
                raise UsageError(f"{option} wants a value behind it. %%tensortrace? shows the options.")
            value, position = following[1], following.end()
        argv.append(f"{option}={_QUOTED.sub(lambda quoted: quoted[2], value)}" if known[option] or equals else option)
    given = magic.parser.parse_args(argv)
    bounds = tuple((name, getattr(given, name)) for name in _BOUNDS if getattr(given, name) is not None)
    settings = Settings(given.name, given.save, not given.no_panel, given.text, bounds)
    return settings, line[position:].strip()


def parse_cell(magic: Any, line: str) -> Settings:
    """Options of `%%tensortrace`; only a comment may stand behind them.

    Raises:
        UsageError: as `parse`, and where something else stands there.
    """
    settings, rest = parse(magic, line)
    if rest and not rest.startswith("#"):
        near = _nearest(rest.split()[0], _takes_value(magic))
        hint = f"did you mean {near}?" if near else "the cell's code stands on the lines below it."
        raise UsageError(f"%%tensortrace takes options only, and {rest!r} is none: {hint}")
    return settings


def _nearest(word: str, known: dict[str, bool]) -> str | None:
    bare = {option.lstrip("-"): option for option in known}
    found = difflib.get_close_matches(word.lstrip("-").replace("_", "-"), list(bare), n=1, cutoff=0.5)
    return bare[found[0]] if found else None


def _unknown(option: str, known: dict[str, bool]) -> str:
    near = _nearest(option, known)
    hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}."
    return f"%%tensortrace has no option {option}: {hint}"


def completions(magic: Any, line: str) -> list[str]:
    """What may stand at the end of `line`: the options that are not there yet; a file or a number is not guessed."""
    return [option for option in _takes_value(magic) if option not in line.split()[:-1]]
