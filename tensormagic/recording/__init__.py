"""What was recorded, as plain data: imports neither torch nor IPython."""
