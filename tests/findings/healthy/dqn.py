"""A healthy program: no warning."""

CELL = """\
import torch
import copy
policy = torch.nn.Linear(3, 2)
target = copy.deepcopy(policy)
opt = torch.optim.Adam(policy.parameters())
obs, memory = torch.zeros(3), []
for step in range(4):
    with torch.no_grad():
        action = policy(obs).argmax()
    memory.append((obs.clone(), action))
    obs += 0.1
    states = torch.stack([m[0] for m in memory])
    actions = torch.stack([m[1] for m in memory])
    q = policy(states).gather(1, actions[:, None]).squeeze(1)
    with torch.no_grad():
        goal = target(states).max(1).values
    loss = torch.nn.functional.smooth_l1_loss(q, goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
target.load_state_dict(policy.state_dict())
"""
