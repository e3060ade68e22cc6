"""A healthy program: no warning."""

CELL = """\
import torch
actor, critic = torch.nn.Linear(3, 2), torch.nn.Linear(3, 1)
opt = torch.optim.Adam([*actor.parameters(), *critic.parameters()])
for step in range(3):
    state = torch.randn(5, 3)
    dist = torch.distributions.Categorical(logits=actor(state))
    action = dist.sample()
    reward = torch.randn(5)
    value = critic(state).squeeze(1)
    advantage = reward - value
    loss = -(dist.log_prob(action) * advantage.detach()).mean() + advantage.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
