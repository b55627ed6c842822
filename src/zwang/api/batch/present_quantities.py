"""Sensors and contacts of worlds in their present states, as functions that are compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.api.analysis.contacts import flat_contacts
from zwang.api.batch.observation import state_sizes, substituted
from zwang.constraint.context import StepForm
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.clock import clock_time
from zwang.simulation.quantities.sensor_values import SensedState, sensor_values

SENSORS, CONTACTS = "sensors", "contacts"


class PresentQuantities(NamedTuple):
    """Functions of the arrays of a world's state, to be traced.

    step: how steps close hard constraints. names: of the parameters. clock: the numbers of the clock.
    Accelerations and forces are those of the state under the control, by Gauss's principle.
    """

    mechanism: Mechanism
    step: StepForm
    names: tuple[str, ...]
    clock: int

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of the arguments."""
        return state_sizes(self.mechanism, self.names, self.clock)

    def sensors(self, clock: Any, q: Any, v: Any, z: Any, u: Any, *params: Any) -> dict[str, np.ndarray]:
        """The values of all sensors, one after the other."""
        state = self._state(clock, q, v, z, u, params)
        names = [sensor.name for sensor in self.mechanism.sensors]
        return {SENSORS: np.array(sensor_values(state, names))}

    def contacts(self, clock: Any, q: Any, v: Any, z: Any, u: Any, *params: Any) -> dict[str, np.ndarray]:
        """The quantities of all candidate contacts, as `flat_contacts` has them."""
        state = self._state(clock, q, v, z, u, params)
        return flat_contacts([contact for _, contact in state.contacts])

    def _state(self, clock: Any, q: Any, v: Any, z: Any, u: Any, params: Any) -> SensedState:
        m, _ = substituted(self.mechanism, self.names, params)
        return SensedState(m, clock_time(clock, self.step.size), q, v, z, u, self.step)
