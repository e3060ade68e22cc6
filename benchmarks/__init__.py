"""What tracing costs: `python -m benchmarks` prints every figure in one run. See README.md."""
