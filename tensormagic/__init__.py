"""tensormagic: see what a PyTorch cell does to memory and gradients.

In a notebook: `%load_ext tensormagic`, then `%%tensortrace` on a cell. In a script: `with tensormagic.trace() as t:`.
"""

from tensormagic.analysis.names import UnknownName
from tensormagic.analysis.sharing import Sharing
from tensormagic.recording.file import RecordingFileError
from tensormagic.tracing import Trace, load, run, trace

__version__ = "0.1.0"
__all__ = [
    "RecordingFileError", "Sharing", "Trace", "UnknownName", "load", "load_ipython_extension", "run", "trace",
    "unload_ipython_extension",
]  # fmt: skip


def load_ipython_extension(ipython: object) -> None:
    """`%load_ext tensormagic`."""
    from tensormagic import magic

    magic.load(ipython)


def unload_ipython_extension(ipython: object) -> None:
    """`%unload_ext tensormagic`."""
    from tensormagic import magic

    magic.unload(ipython)
