"""A healthy program: no warning."""

CELL = """\
import torch
class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, low):
        keep = x > low
        ctx.save_for_backward(keep)
        ctx.low = low
        out = torch.where(keep, x, torch.full_like(x, low))
        ctx.mark_non_differentiable(keep)
        return out, keep
    @staticmethod
    def backward(ctx, g, _keep):
        (keep,) = ctx.saved_tensors
        return g * keep, None
net = torch.nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    out, keep = Clip.apply(net(torch.randn(3, 2)), 0.0)
    opt.zero_grad()
    (out.pow(2).sum() + keep.float().sum()).backward()
    opt.step()
"""
