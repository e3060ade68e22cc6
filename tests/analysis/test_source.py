"""The syntax tree of a cell, of one with IPython's own lines too."""

from __future__ import annotations

import ast
import warnings

import pytest

from tensormagic.analysis.findings.base import loop_bodies
from tensormagic.analysis.source import code_of, parsed


def test_lines_of_ipython_count_as_pass_and_keep_their_place():
    source = "%matplotlib inline\nfor i in range(3):\n    !ls {i}\n    %time f(i)\n    x = i\n?x\n"
    tree = parsed(source)
    assert tree is not None
    assert [type(node) for node in tree.body] == [ast.Pass, ast.For, ast.Pass]
    assert loop_bodies(source) == [(3, 5)]


def test_what_does_not_parse_has_no_tree_and_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parsed("x = (") is None
        assert parsed("x = 1\0") is None
        assert parsed("x = '\\d'") is not None
    assert loop_bodies("x = (") == []


def test_a_modulo_is_python():
    assert ast.unparse(parsed("x = (7\n     % 2)")) == "x = 7 % 2"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("    x = 1  # clip_grad_norm_(w)", "x = 1"),
        ("s = 'a # b'  # c", "s = 'a # b'"),
        ("s = \"it's # here\" + '\\'#'  # c", "s = \"it's # here\" + '\\'#'"),
        ("# all of it", ""),
        ("y = x", "y = x"),
    ],
)
def test_code_without_its_comment(line, code):
    assert code_of(line) == code
