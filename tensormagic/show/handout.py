"""The handout: one HTML file that steps by itself, without kernel, network or a file beside it."""

from __future__ import annotations

import html as escaping
from typing import TYPE_CHECKING

from tensormagic.show import palette
from tensormagic.show.panel import fragment

if TYPE_CHECKING:
    from tensormagic.show.shape import View
    from tensormagic.tracing import Trace

# The page says itself that it loads nothing: a browser refuses whatever it would ask a network for.
POLICY = "default-src 'none'; img-src data:; script-src 'unsafe-inline'; style-src 'unsafe-inline'"


def page(view: View, picture: bytes | None = None) -> str:
    """The whole page for a view.

    Args:
        view: what is drawn.
        picture: a PNG for readers that run no scripts.
    """
    light, dark = palette.THEMES["light"], palette.THEMES["dark"]
    style = (
        f"body{{margin:0;padding:18px;background:{light.ground};color:{light.ink};font-family:system-ui,sans-serif}}"
        f"@media screen and (prefers-color-scheme:dark){{body{{background:{dark.ground};color:{dark.ink}}}}}"
        "[data-tensortrace]{max-width:1344px;margin:auto}"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{escaping.escape(view['title'])}</title><style>{style}</style></head>"
        f"<body>{fragment(view, 'handout', picture)}</body></html>\n"
    )


def html(trace: Trace) -> str:
    """The handout of a trace, as the text of one HTML file."""
    from tensormagic.show import picture
    from tensormagic.show import view as views

    view = views.build(trace)
    return page(view, picture.png(view))
