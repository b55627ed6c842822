"""Controllers inside of actuators."""

from __future__ import annotations

from dataclasses import dataclass

from zwang.mechanism.numbers import Number, bounded, number
from zwang.mechanism.type_validation import validated
from zwang.scalar import is_zero


@validated
@dataclass(frozen=True)
class Pid:
    """A PID controller of an actuator, as MuJoCo's plugin `mujoco.pid`: with the error e = u - length,

        force = proportional * e + integral * (integral of e) + derivative * de/dt

    u: the control or the activation; du/dt is that of the activation, and 0 for a control. The integral of e
    is a state of the actuator; the force has its value at the end of the step, and in error-controlled
    integration the present value.
    largest_integral_force [N m or N]: the limit of the second term; None for none.
    slew_rate [unit of u/s]: the limit of |du/dt|, from the set point of the step before, which is a state of
    the actuator; None for none. At the time 0 the set point is u, without a limit; the stages of "rk4" within
    the first step are later, so that its set point begins at 0, as MuJoCo's. Error-controlled integrators
    refuse slew rates.
    Raises DescriptionError for negative limits, and for an integral force with a limit and a negative factor.
    """

    proportional: Number = 0
    integral: Number = 0
    derivative: Number = 0
    largest_integral_force: Number | None = None
    slew_rate: Number | None = None

    def __post_init__(self):
        where, limited = "a PID controller", self.largest_integral_force is not None
        for name in ("proportional", "derivative"):
            object.__setattr__(self, name, number(getattr(self, name), f"{name} of {where}"))
        integral = number(self.integral, f"integral of {where}")
        if limited:
            integral = bounded(integral, f"integral of {where} with a largest_integral_force", least=0)
        object.__setattr__(self, "integral", integral)
        for name in ("largest_integral_force", "slew_rate"):
            if getattr(self, name) is not None:
                value = bounded(getattr(self, name), f"{name} of {where}", least=0)
                object.__setattr__(self, name, value)

    @property
    def states(self) -> tuple[str, ...]:
        """The names of its states, in MuJoCo's order."""
        integral = () if is_zero(self.integral) else ("integral",)
        return integral if self.slew_rate is None else (*integral, "set point")
