"""`python -m benchmarks [part ...]`: every figure, or only the parts named; `--quick` and `--long` as README.md says."""

from __future__ import annotations

import argparse
import platform

import torch

from benchmarks import memory, panel, ratios, sharing


def main() -> None:
    parts = ("after", "ratios", "memory", "panel", "sharing")
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(parts)}; none: all", metavar="part")
    parser.add_argument("--quick", action="store_true", help="three rounds of each ratio, no profiler")
    parser.add_argument("--long", action="store_true", help="a million calls too, under tracemalloc: minutes")
    options = parser.parse_args()
    unknown = set(options.parts) - set(parts)
    if unknown:
        parser.error(f"no part is called {', '.join(sorted(unknown))}: there are {', '.join(parts)}")
    wanted = options.parts or parts
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, Python {platform.python_version()}, {platform.machine()}, one thread")
    if "after" in wanted:
        ratios.afterwards()  # before anything has been traced in this process
    if "ratios" in wanted:
        ratios.table(options.quick)
    if "memory" in wanted:
        memory.report(options.long)
    if "panel" in wanted:
        panel.report()
    if "sharing" in wanted:
        sharing.report()


if __name__ == "__main__":
    main()
