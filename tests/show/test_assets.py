"""Several modules become one: what joining keeps, and what it refuses."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tensormagic.show import assets

SHOW = Path(assets.__file__).parent


def ran(script: str, tmp_path: Path) -> object:
    """What the default export of a joined script is, as JSON, run by node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node runs the joined script")
    (tmp_path / "joined.mjs").write_text(script, encoding="utf-8")
    program = "import('./joined.mjs').then((m) => console.log(JSON.stringify(m.default)))"
    return json.loads(
        subprocess.run([node, "-e", program], cwd=tmp_path, check=True, capture_output=True, timeout=60).stdout
    )


def test_names_of_two_modules_do_not_meet(tmp_path: Path) -> None:
    modules = {
        "one": "// said\nconst secret = 1;\nexport function get() {\n  return secret;\n}\nexport const other = 5;\n",
        "two": 'import { get as first,\n  other } from "./one.js";\nconst secret = 2;\n/** Doc. */\n'
        "export default { a: first(), b: secret, other };\n",
    }
    joined = assets.join(modules, "two")
    assert ran(joined, tmp_path) == {"a": 1, "b": 2, "other": 5}
    assert "said" not in joined
    assert "Doc" not in joined


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ('import * as all from "./one.js";', "statement 1"),
        ('import x from "library";', "not a form that is joined"),
        ("export { x };", "not a form that is joined"),
        ('import { x } from "./later.js";', "does not come before it"),
    ],
)
def test_other_module_syntax_is_refused(source: str, told: str) -> None:
    with pytest.raises(assets.ModuleSyntax, match=told):
        assets.join({"one": "", "two": source}, "two")


def test_every_module_of_the_room_is_joined_and_short() -> None:
    assert {path.stem for path in SHOW.glob("*.js")} == set(assets.MODULES)
    for path in SHOW.glob("*.js"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 450, path.name
        assert not any(line.count("`") % 2 for line in path.read_text(encoding="utf-8").splitlines()), path.name


def test_the_renderer_joins_to_a_module_with_the_hooks_of_a_widget(tmp_path: Path) -> None:
    script = assets.script().replace("export default $renderer;", "export default Object.keys($renderer);")
    assert ran(script, tmp_path) == ["mountAll", "initialize", "render"]


def test_the_script_may_stand_in_a_script_element_and_is_small() -> None:
    assert assets.escaped(assets.script()) == assets.script()
    assert len(assets.script().encode()) < 60_000
    assert assets.page_script("abc").rstrip().endswith('$renderer.mountAll("abc");')


def test_escaped_json_reads_back_the_same() -> None:
    value = {"text": "</script><!-- --><SCRIPT> \\u003c </"}
    text = assets.escaped(json.dumps(value))
    assert "</" not in text
    assert "<!--" not in text
    assert json.loads(text) == value
