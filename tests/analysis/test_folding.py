"""Graphs are folded by module and by what repeats, and stay graphs without circles."""

from __future__ import annotations

import random

import pytest

from tensormagic.analysis.folding import fold, modules, ordered


def network(layers: int, residual: bool = False):
    """Linear and ReLU, again and again: what autograd's graph of it looks like. Leaves are negative."""
    inputs, labels, owners = {}, {}, {}
    last, seq = None, 0
    for layer in range(layers):
        weight, bias = -1 - 2 * layer, -2 - 2 * layer
        owners[weight] = owners[bias] = f"net[{2 * layer}]"
        inputs[seq], labels[seq] = [weight], "t"
        inputs[seq + 1], labels[seq + 1] = [bias, *([] if last is None else [last]), seq], "addmm"
        inputs[seq + 2], labels[seq + 2] = [seq + 1], "relu"
        after = seq + 2
        if residual and last is not None:
            inputs[seq + 3], labels[seq + 3] = [seq + 2, last], "add"
            after = seq + 3
        last, seq = after, seq + 4
    inputs[seq], labels[seq] = [last], "sum"
    return inputs, labels, owners


def folded(inputs, labels, owners, most=12):
    order = ordered([*inputs, *owners], inputs)
    return fold(order, inputs, labels, modules(order, inputs, owners, [n for n in labels if labels[n] == "t"]), most)


def without_circle(boxes, inputs):
    place = {node: at for at, box in enumerate(boxes) for node in box.nodes}
    return all(place[one] <= place[node] for node, taken in inputs.items() for one in taken)


@pytest.mark.parametrize("residual", [False, True])
def test_layers_that_repeat_are_one_box(residual):
    inputs, labels, owners = network(12, residual)
    boxes = folded(inputs, labels, owners)
    (piece,) = [box for box in boxes if box.times > 1]
    assert piece.times >= 11  # the first has no input that wants a gradient
    assert len(piece.parts) == piece.times
    assert [part.module for part in piece.parts[0].parts][:1] == ["net[0]" if len(piece.parts) == 12 else "net[2]"]
    assert without_circle(boxes, inputs)
    assert sorted(node for box in boxes for node in box.nodes) == sorted([*inputs, *owners])


def test_small_graphs_stay_as_they_are():
    inputs, labels, owners = network(2)
    assert all(len(box.nodes) == 1 for box in folded(inputs, labels, owners))


def test_a_parameter_of_two_layers_stands_by_itself():
    inputs = {n: [-1, n - 1] if n else [-1] for n in range(40)}
    labels = dict.fromkeys(inputs, "mul")
    boxes = folded(inputs, labels, {-1: "cell"})
    assert boxes[0].nodes == (-1,)
    assert len(boxes) <= 12


def test_what_follows_a_module_is_not_said_to_be_in_it():
    inputs = {0: [-1], 1: [-2, 0], 2: [1]}
    found = modules(ordered([-1, -2, 0, 1, 2], inputs), inputs, {-1: "fc", -2: "fc"}, [0])
    assert found == {-1: "fc", -2: "fc", 0: "fc", 1: "fc"}


def test_five_thousand_nodes_are_few_boxes():
    inputs, labels, owners = network(1000)
    assert len(inputs) + len(owners) == 5001
    assert len(folded(inputs, labels, owners)) <= 12


@pytest.mark.parametrize("seed", range(20))
def test_any_graph_is_folded_without_a_circle(seed):
    draw = random.Random(seed)
    count = draw.randrange(1, 300)
    inputs = {n: draw.sample([*range(n), *range(-20, 0)], min(n, draw.randrange(3))) for n in range(count)}
    labels = {n: draw.choice("ab") for n in inputs}
    leaves = {one for taken in inputs.values() for one in taken if one < 0}
    owners = {leaf: f"m{leaf % 4}" for leaf in leaves}
    boxes = folded(inputs, labels, owners)
    assert len(boxes) <= 12
    assert without_circle(boxes, inputs)
    assert sorted(node for box in boxes for node in box.nodes) == sorted([*inputs, *leaves])
