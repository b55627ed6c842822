"""A policy that balances a pole on a cart, trained by back-propagation through the steps in PyTorch."""

import numpy as np
import torch

import zwang as zw
import zwang.interop.torch as zwang_torch

cart_pole = zw.Mechanism(
    "cart pole",
    [
        zw.Body("cart", zw.Prismatic("slide", (1, 0, 0)), mass=1.0),
        zw.Body("pole", zw.Revolute("hinge", (0, 1, 0)), parent="cart", mass=0.2, com=(0, 0, 0.5)),
    ],
    forces=[zw.Motor("push", "slide")],
)
fast = zw.compile(cart_pole)
step = zwang_torch.function(fast.step, step=0.05, integrator="euler")
torch.manual_seed(0)
policy = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).double()
optimiser = torch.optim.Adam(policy.parameters(), lr=0.02)
for k in range(81):
    q, v = 0.3 * torch.randn(32, 2, dtype=torch.float64), torch.zeros(32, 2, dtype=torch.float64)
    loss = torch.zeros((), dtype=torch.float64)
    for _ in range(30):
        q, v, _ = step(q, v, 10 * policy(torch.cat([q, v], dim=-1)))
        loss = loss + (q.square().sum(-1) + 0.1 * v.square().sum(-1)).mean() / 30
    optimiser.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimiser.step()
    if k % 20 == 0:
        print(f"{k:4d}  loss {loss.item():.4f}")


def controlled(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The push of the policy, for zwang's own rollout."""
    with torch.no_grad():
        return 10 * policy(torch.from_numpy(np.concatenate([q, v], axis=-1))).numpy()


q, v = np.tile([0.0, 0.4], (5, 1)) * np.linspace(-1, 1, 5)[:, None], np.zeros((5, 2))
for _ in range(200):  # ten seconds
    q, v, _ = fast.step(q, v, controlled(q, v), step=0.05, integrator="euler")[:3]
print("angles after ten seconds:", q[:, 1].round(4))
assert np.abs(q[:, 1]).max() < 0.1
