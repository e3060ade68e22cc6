"""TracePanel: one anywidget that shows itself as HTML first.

The output holds a picture and a table (what a page without scripts shows), the trace as data, and the renderer, which
puts the live panel in their place. So an output steps when it is reopened, converted or printed, without a kernel.
While a kernel runs, the widget's model finds the panel of its output by an id and both have one step.
Inside a Tab or VBox, which show widget views only, the same renderer draws from the model.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import uuid
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from tensormagic.show import assets

if TYPE_CHECKING:
    from tensormagic.show.shape import View
    from tensormagic.tracing import Trace

PLAIN_UP_TO = 50_000  # bytes of JSON; more is compressed
TABLE_ROWS = 40


def packed(view: View) -> tuple[str, str]:
    """(text, form) of a view: "plain" JSON, or "gzip" in base64 above PLAIN_UP_TO bytes."""
    text = json.dumps(view, ensure_ascii=False, separators=(",", ":"))
    data = text.encode()
    if len(data) < PLAIN_UP_TO:
        return text, "plain"
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode("ascii"), "gzip"


def table(view: View) -> str:
    """The steps as an HTML table: line, code, sentence. Everything in it is escaped."""
    words = view["labels"]
    rows = []
    for step in view["steps"][:TABLE_ROWS]:
        file = view["files"][step["file"]]
        code = (
            file["lines"][step["line"] - file["first"]]
            if 0 <= step["line"] - file["first"] < len(file["lines"])
            else ""
        )
        said = "".join(text for text, _ in step.get("say", []))
        cells = (str(step["line"]), f"<code>{html.escape(code)}</code>", html.escape(said))
        rows.append("<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>")
    head = "".join(f'<th style="text-align:left">{html.escape(word)}</th>' for word in words["table_columns"])
    more = len(view["steps"]) - len(rows)
    note = f"<p>{html.escape(words['table_more'].format(count=more))}</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{note}"


def fragment(view: View, link: str, picture: bytes | None = None) -> str:
    """The panel as HTML that needs nothing else.

    Args:
        view: what is drawn.
        link: the id by which a live model finds it; letters and digits only.
        picture: a PNG that stands there until the renderer runs.
    """
    text, form = packed(view)
    summary = "".join(text for text, _ in view.get("summary", []))
    image = ""
    if picture:
        source = base64.b64encode(picture).decode("ascii")
        image = f'<img alt="{html.escape(view["alt"], quote=True)}" src="data:image/png;base64,{source}">'
    return (
        f'<div data-tensortrace="{link}" data-lm-suppress-shortcuts="true">'
        f"{image}<p>{html.escape(view['title'])}: {html.escape(summary)}</p>{table(view)}"
        f'<script type="application/json" data-form="{form}">{assets.escaped(text)}</script></div>'
        f'<script type="module">{assets.escaped(assets.page_script(link))}</script>'
    )


class TracePanel(anywidget.AnyWidget):
    """The live panel of a trace.

    Args:
        trace: the Trace that is shown.

    `step` is the step shown, counted from 0; reading and setting it moves the panel of the output as well.
    """

    _ipython_display_ = None  # ipywidgets 7 defines it, and IPython would ask it before the HTML

    step = traitlets.Int(0).tag(sync=True)
    link = traitlets.Unicode().tag(sync=True)
    data = traitlets.Unicode().tag(sync=True)
    form = traitlets.Unicode().tag(sync=True)

    def __init__(self, trace: Trace, **options: Any) -> None:
        from tensormagic.show import view

        self._shown = view.build(trace)
        self._esm = assets.script()
        text, form = packed(self._shown)
        self._steps = len(self._shown["steps"])
        super().__init__(
            step=self._shown.get("start", 0), link=uuid.uuid4().hex, data=text, form=form, **options
        )  # fmt: skip

    @traitlets.validate("step")
    def _inside(self, proposal: dict[str, Any]) -> int:
        """A step outside the trace is refused with its bounds."""
        value = proposal["value"]
        if not 0 <= value < max(1, self._steps):
            raise traitlets.TraitError(f"step {value} is outside this trace: it has steps 0 to {self._steps - 1}")
        return value

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """HTML and text; no widget view, which is not there when a notebook is reopened."""
        from tensormagic.show import picture

        data = {
            "text/html": fragment(self._shown, self.link, picture.png(self._shown)),
            "text/plain": f"{self._shown['title']}: {self._shown['alt']}",
        }
        return data, {}
