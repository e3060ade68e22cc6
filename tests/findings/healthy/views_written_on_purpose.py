"""A healthy program: no warning."""

CELL = """\
import torch
image = torch.zeros(4, 4)
row, block = image[1], image[2:, 2:]
row[:] = 1
block += 5
copy = image.clone()
image.zero_()
"""
