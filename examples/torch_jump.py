"""A policy for a leg that jumps to commanded heights, trained by back-propagation through its contacts.

    python examples/torch_jump.py [--iterations 300]

The trunk of the leg slides on a vertical rail; its foot is a sphere that sticks, slips and lifts off. The
loss is the error of the height that the centre of mass reaches in the flight after 0.3 s. Its gradient goes
through all steps with their contacts and friction, by the exact derivatives of the steps in PyTorch.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

import zwang as zw
import zwang.interop.torch as zwang_torch

LENGTH, FOOT, MASS, GRAVITY, TORQUE = 0.25, 0.02, 3.9, 9.81, 15.0  # m, m, kg, m/s^2, N m
STEP, STEPS, LEGS = 0.005, 60, 16

leg = zw.Mechanism(
    "leg on a rail",
    [
        zw.Body("floor", geometry=zw.Plane()),
        zw.Body("trunk", zw.Prismatic("rail", (0, 0, 1)), mass=3.0),
        zw.Body(
            "thigh",
            zw.Revolute("hip", (0, 1, 0)),
            parent="trunk",
            mass=0.6,
            com=(0, 0, -LENGTH / 2),
            inertia=(0.004, 0.004, 0.0004),
        ),
        zw.Body(
            "shank",
            zw.Revolute("knee", (0, 1, 0)),
            parent="thigh",
            position=(0, 0, -LENGTH),
            mass=0.3,
            com=(0, 0, -LENGTH / 2),
            inertia=(0.002, 0.002, 0.0002),
            geometry=zw.Sphere(FOOT, position=(0, 0, -LENGTH)),
        ),
    ],
    forces=[
        zw.Damper("hip", 0.1),
        zw.Damper("knee", 0.1),
        zw.Motor("hip motor", "hip"),
        zw.Motor("knee motor", "knee"),
    ],
)
fast = zw.compile(leg)
step = zwang_torch.function(fast.step, step=STEP, integrator="implicitfast")
mass_centre, momentum = zwang_torch.function(fast.mass_centre), zwang_torch.function(fast.momentum)


def crouched(count: int, spread: float) -> torch.Tensor:
    """Configurations (count, 3) with the foot on the floor."""
    angles = torch.tensor([0.7, -1.4]) + spread * torch.randn(count, 2)
    height = LENGTH * (angles[:, 0].cos() + angles.sum(-1).cos()) + FOOT
    return torch.cat([height[:, None], angles], dim=-1)


def torques(policy: torch.nn.Module, q: torch.Tensor, v: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """The torques of the two motors."""
    observed = torch.cat([10 * (q - crouched(1, 0.0)), 0.3 * v, 5 * wanted], dim=-1)
    return TORQUE * torch.tanh(policy(observed))


def height_of_flight(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The height above the crouch that the centre of mass reaches in free flight from this state."""
    rise = mass_centre(q)[:, 2] - mass_centre(crouched(1, 0.0))[0, 2]
    return rise + torch.relu(momentum(q, v)[:, 2] / MASS).square() / (2 * GRAVITY)


def train(policy: torch.nn.Module, iterations: int) -> list[float]:
    """The losses; the policy is trained in place."""
    optimiser = torch.optim.Adam(policy.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, iterations, eta_min=1e-4)
    losses = []
    for k in range(iterations):
        wanted = 0.1 + 0.2 * torch.rand(LEGS, 1)
        q, v = crouched(LEGS, 0.02), torch.zeros(LEGS, 3)
        effort = torch.zeros(())
        for _ in range(STEPS):
            u = torques(policy, q, v, wanted)
            q, v, _ = step(q, v, u)
            effort = effort + (u / TORQUE).square().mean() / STEPS
        error = height_of_flight(q, v) - wanted[:, 0]
        loss = (error / 0.1).square().mean() + 0.01 * effort
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
        if k % 30 == 0 or k == iterations - 1:
            print(f"{k:4d}  loss {losses[-1]:8.4f}")
    return losses


def jumps(policy: torch.nn.Module, wanted: np.ndarray) -> np.ndarray:
    """The heights that the centre of mass reaches in zwang's own steps, without torques after 0.3 s."""
    q, v = crouched(len(wanted), 0.0).numpy(), np.zeros((len(wanted), 3))
    highest, start = np.full(len(wanted), -np.inf), fast.mass_centre(q)[:, 2]
    for k in range(3 * STEPS):
        with torch.no_grad():
            command = torch.from_numpy(wanted[:, None])
            u = torques(policy, torch.from_numpy(q), torch.from_numpy(v), command).numpy()
        q, v, _ = fast.step(q, v, u * (k < STEPS), step=STEP, integrator="implicitfast")[:3]
        highest = np.maximum(highest, fast.mass_centre(q)[:, 2] - start)
    return highest


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=300)
    iterations = parser.parse_args().iterations
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)  # the tensors are small
    torch.manual_seed(0)
    policy = torch.nn.Sequential(torch.nn.Linear(7, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
    torch.nn.init.normal_(policy[2].weight, std=0.01)  # small torques at the start
    losses = train(policy, iterations)
    assert losses[-1] < losses[0] / 5
    wanted = np.array([0.1, 0.15, 0.2, 0.25, 0.3])
    reached = jumps(policy, wanted)
    for height, found in zip(wanted, reached, strict=True):
        print(f"commanded {height:.2f} m, jumps {found:.3f} m")
    if iterations >= 300:
        assert np.abs(reached - wanted).max() < 0.05
