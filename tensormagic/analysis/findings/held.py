"""What a tensor held when a call took it, as far as it was looked at."""

from __future__ import annotations

import numpy as np

from tensormagic.analysis.findings.base import Facts
from tensormagic.recording import values
from tensormagic.recording.model import CallFlag


def holds(facts: Facts, object: int, call: int, what: CallFlag) -> bool | None:
    """Did a tensor hold a NaN (`what` is NAN_OUT) or an infinity (INF_OUT) when a call took it?

    Returns:
        None where its values then are not known: it was written since it was last looked at.
    """
    state = facts.index.state_before_call(object, call)
    if state is None or state.storage < 0:
        return None
    calls, given = facts.recording.calls, [one for one in facts.index.calls_giving(object) if one < call]
    written = [
        write for row in facts.index.writes_to(state.storage)
        if (write := facts.recording.writes[row]).step <= calls[call].step and write.call < call
    ]  # fmt: skip
    if given and calls[given[-1]].flags & CallFlag.CHECKED and not any(write.call > given[-1] for write in written):
        return bool(calls[given[-1]].flags & what)
    taken = facts.index.snapshot(state.storage, calls[call].step - 1) or facts.index.snapshot(
        state.storage, calls[call].step - 1, object
    )
    if taken is None or any(write.step > taken.step for write in written):
        return None
    blob = facts.recording.blobs[taken.blob]
    array = values.decode(blob)
    if array is None:
        return bool(blob.nans if what == CallFlag.NAN_OUT else blob.infs)
    return array.dtype.kind in "fc" and bool((np.isnan if what == CallFlag.NAN_OUT else np.isinf)(array).any())
