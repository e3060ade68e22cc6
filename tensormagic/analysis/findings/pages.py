"""One page a rule, made of the rule's own text: `python -m tensormagic.analysis.findings.pages docs/findings`."""

from __future__ import annotations

import sys
from pathlib import Path

from tensormagic.analysis.findings import Rule, rules

_INDEX = (
    "# What tensormagic finds\n\nMade by `python -m tensormagic.analysis.findings.pages docs/findings`; the texts stand in "
    "the rules.\n\n"
)


def page(rule: Rule) -> str:
    """A rule's page as Markdown."""
    return (
        f"# {rule.id}\n\n## What it sees\n\n{rule.sees}\n\n## Why it matters\n\n{rule.matters}\n\n## Example\n\n"
        f"```python\n{rule.example.rstrip()}\n```\n\n## Instead\n\n```python\n{rule.instead.rstrip()}\n```\n\n"
        f"## What it does not see\n\n{rule.blind}\n"
    )


def pages() -> dict[str, str]:
    """File name -> text of every page, with an index."""
    made = {f"{rule.id}.md": page(rule) for rule in rules()}
    made["README.md"] = _INDEX + "".join(f"- [{rule.id}]({rule.id}.md): {rule.sees}\n" for rule in rules())
    return made


def write(folder: Path) -> None:
    """Write the pages, and remove those of rules that are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    made = pages()
    for old in folder.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m tensormagic.analysis.findings.pages FOLDER")
    write(Path(sys.argv[1]))
