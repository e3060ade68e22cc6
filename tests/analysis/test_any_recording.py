"""Whatever a loaded file holds within the contract: analysis answers or refuses in its own words, and always ends."""

import contextlib

from hypothesis import HealthCheck, given, settings

from tensormagic.analysis import names
from tensormagic.analysis.index import Index
from tensormagic.analysis.sharing import matrix, relation
from tensormagic.analysis.way import way
from tests.recording.test_file import recordings


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(recordings())
def test_any_recording_can_be_asked(recording):
    index = Index(recording)
    for step in (None, *range(-1, len(recording.steps))):
        at = names.at(index, step)
        told, array = matrix(index, step=step)
        for i, a in enumerate(told):
            assert at[a].text == a
            for j, b in enumerate(told):
                assert relation(index, a, b, step).sharing is array[i, j]
                way(index, a, b, step)
        with contextlib.suppress(names.UnknownName, ValueError):
            at["x"]
    for step in range(-1, len(recording.steps)):
        index.cell_line(step)
        if step >= 0:
            index.line_text(step)
    for call in range(len(recording.calls)):
        index.inputs(call), index.outputs(call), index.function(call), index.args(call)
    for storage in range(len(recording.storages)):
        index.storage_nbytes(storage), index.snapshot(storage), index.writes_to(storage)
