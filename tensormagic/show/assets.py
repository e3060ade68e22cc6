"""The renderer as one script text: several ES modules are written, one is shipped.

Notebook HTML, handout and widget each need the renderer in one piece, without a build step or a file beside it. Each
module becomes a function that returns what it exports, so names of two modules never meet; imports become a
destructuring of that. Only the module syntax that our own files use is understood, and anything else is refused.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from importlib import resources

from tensormagic.show import palette

MODULES = ("timeline", "dom", "code", "memory", "matrix", "graph", "gradients", "lists", "data", "theme", "renderer")
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";$')
_EXPORT = re.compile(r"^export (?:async )?(?:function|class|const|let) (\w+)")
_ANY = re.compile(r"^(?:import|export)\b")


class ModuleSyntax(ValueError):
    """A module uses an import or export that `join` does not know."""


def join(modules: Mapping[str, str], last: str) -> str:
    """One script of several ES modules.

    Args:
        modules: name to source, each after those it imports.
        last: name of the module whose `export default` is the script's.

    Returns:
        The text of one ES module. Comments on lines of their own and indentation are left out: this text is in
        every notebook output. (Our modules have no multi-line template strings.)

    Raises:
        ModuleSyntax: an import or export of another form, or an import from a module that is not given before.
    """
    parts: list[str] = []
    seen: set[str] = set()
    for name, source in modules.items():
        lines, exports = [], []
        for number, line in enumerate(_bare(_one_line_imports(source)), 1):
            if found := _IMPORT.match(line):
                if found[2] not in seen:
                    raise ModuleSyntax(f"{name}.js imports {found[2]}.js, which does not come before it")
                lines.append(f"const {{{found[1].strip()}}} = ${found[2]};".replace(" as ", ": "))
            elif found := _EXPORT.match(line):
                exports.append(found[1])
                lines.append(line.removeprefix("export "))
            elif line.startswith("export default ") and name == last:
                lines.append(f"return {line.removeprefix('export default ')}")
            elif _ANY.match(line):
                raise ModuleSyntax(f"{name}.js, statement {number}: {line!r} is not a form that is joined")
            else:
                lines.append(line)
        if name != last:
            lines.append(f"return {{{', '.join(exports)}}};")
        parts.append(f"const ${name} = (() => {{\n" + "\n".join(lines) + "\n})();")
        seen.add(name)
    return "\n".join(parts) + f"\nexport default ${last};\n"


def _one_line_imports(source: str) -> str:
    return re.sub(r"^import \{[^}]*\}", lambda m: re.sub(r"\s+", " ", m[0]).replace(", }", " }"), source, flags=re.M)


def _bare(source: str) -> list[str]:
    """Lines without indentation, comments and blank ones."""
    source = re.sub(r"^\s*/\*\*.*?\*/\s*$", "", source, flags=re.M | re.S)
    lines = (line.strip() for line in source.splitlines())
    return [line for line in lines if line and not line.startswith("//")]


def style() -> str:
    """The style sheet of the shadow root, colours included, without comments and space that means nothing."""
    text = re.sub(r"/\*.*?\*/", "", _read("style.css"), flags=re.S)
    text = re.sub(r"\s+", " ", palette.css() + text)
    return re.sub(r" ?([{};,]) ?", r"\1", text).replace(": ", ":")


@functools.cache
def script() -> str:
    """The whole renderer: an ES module whose default export is anywidget's, with `mountAll` beside it."""
    words = f"export const css = {json.dumps(style())};\nexport const colours = {palette.COUNT};\n"
    sources = {"style": words} | {name: _read(f"{name}.js") for name in MODULES}
    return join(sources, "renderer")


def page_script(link: str) -> str:
    """The renderer for a page: the panels of that id come alive as it runs."""
    return script().replace("export default $renderer;", f'$renderer.mountAll("{link}");')


def _read(name: str) -> str:
    return resources.files("tensormagic.show").joinpath(name).read_text(encoding="utf-8")


def escaped(text: str) -> str:
    """JSON or script text that may stand inside a <script> element: no `</` and no `<!--` is left in it.

    In JSON and in JavaScript strings `\\u003c` is the same character; our scripts have `<` before `/` or `!` nowhere
    else (tested).
    """
    return text.replace("</", "\\u003c/").replace("<!--", "\\u003c!--")
