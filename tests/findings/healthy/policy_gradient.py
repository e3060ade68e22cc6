"""A healthy program: no warning."""

CELL = """\
import torch
policy = torch.nn.Linear(2, 3)
opt = torch.optim.Adam(policy.parameters(), lr=0.1)
returns = []
for episode in range(4):
    saved, rewards = [], []
    for t in range(4):
        dist = torch.distributions.Categorical(logits=policy(torch.ones(1, 2)))
        action = dist.sample()
        saved.append(dist.log_prob(action))
        rewards.append(float(action.item() == 1))
    loss = -(torch.cat(saved) * sum(rewards)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    returns.append(sum(rewards))
"""
