"""The pages in docs/ are the rules' own texts."""

from pathlib import Path

from tensormagic.analysis.findings import pages

FOLDER = Path(__file__).parents[2] / "docs" / "findings"


def test_pages_on_disk_are_those_of_the_rules():
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")} == pages.pages()
