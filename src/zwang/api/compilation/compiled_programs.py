"""Machine code of a mechanism's functions, each traced and compiled when it is first called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from zwang.api.arguments import validation
from zwang.api.arguments.parameter_values import Parameters, parameter_array
from zwang.api.compilation.programs import Key, check_key, check_step, empty_warm_start, program_of
from zwang.api.compilation.shaped_function import ShapedFunction
from zwang.api.compilation.step_results import checked_outputs
from zwang.api.functions.function_table import ARGUMENTS
from zwang.compiler.backends import c, ptx
from zwang.compiler.ir.program import Program
from zwang.compiler.pipeline import count_operations
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.compiler.runtime.compiled_function import execution_settings as check_settings
from zwang.compiler.runtime.direct_call import PLAIN
from zwang.compiler.runtime.kept_rollouts import KeptRollouts
from zwang.constraint.independent_velocities import independent_velocities
from zwang.errors import DescriptionError, SimulationError, TraceError
from zwang.mechanism.constraints import PointSpeed
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.applied_forces import activations, time_dependent_parts
from zwang.simulation.clock import first_clock

ArrayLike = npt.ArrayLike
Reduction = bool | str | PointSpeed | Sequence[str | PointSpeed]


class CompiledPrograms:
    """The programs of a mechanism's functions, their machine code, and their code as text.

    settings: those of the machine code, as they were given.
    """

    def __init__(
        self, mechanism: Mechanism, *, dtype: str, lanes: int | None, threads: int | None, cache: bool
    ):
        self.mechanism = mechanism
        check_settings(dtype, lanes, threads)
        self.settings: dict[str, Any] = {"dtype": dtype, "lanes": lanes, "threads": threads, "cache": cache}
        self._programs: dict[Key, Program] = {}
        self._functions: dict[Key, Any] = {}
        self._step_keys: dict[tuple[Any, ...], tuple[Key, tuple[str, ...]]] = {}
        self._rollouts: dict[tuple[Any, ...], tuple[KeptRollouts, list[np.ndarray], tuple[str, ...]]] = {}
        self._not_traced: set[Key] = set()
        self._symbolic = bool(mechanism.symbols)
        self._time_dependent = time_dependent_parts(mechanism)
        self._has_activations = bool(activations(mechanism))
        self._is_plain = not self._symbolic and not self._time_dependent  # its steps have no further inputs

    def count_operations(self, function: Key = "forward_dynamics") -> dict[str, int]:
        """The number of arithmetic operations of a function for one world, by kind, with "total" and "flops".

        function: as for `source`.
        """
        return count_operations(self._program(function))

    def source(self, language: Literal["llvm", "c", "ptx"] = "c", function: Key = "forward_dynamics") -> str:
        """The code of a function as text.

        language: "llvm" for LLVM IR of this processor, "c" (default) for portable C99, "ptx" for NVIDIA GPUs.
        function: the name of a method, "step" for the step of the mechanism's options; ("frame_pose", frame),
        ("frame_jacobian", frame, axes), ("step", h, integrator) or ("step", h, integrator,
        coordinate_reduction); ("jacobian", function, inputs), such as ("jacobian", "mass_matrix", ("q",)),
        for the results and their derivatives (m, n) by the elements of these inputs. Raises DescriptionError
        for another language, UnknownNameError for another function.
        """
        if not isinstance(language, str) or language not in SOURCES:
            raise DescriptionError(f"language is {language!r}; it must be one of {', '.join(SOURCES)}")
        return SOURCES[language](self._program(function), self.settings)

    def compiled_function(self, function: Key) -> CompiledFunction:
        """A function as machine code over flat arrays (..., size), one for each input of its program.

        function: as for `source`. Raises what `source` does, and TraceError for the Jacobian of a function
        with loops or branches.
        """
        found = self._compiled(function)
        return found.compiled if isinstance(found, ShapedFunction) else found

    def compiled_or_none(self, function: Key) -> CompiledFunction | None:
        """As `compiled_function`, but None for a function that cannot be traced, which is tried only once."""
        if function not in self._not_traced:
            try:
                return self.compiled_function(function)
            except TraceError:
                self._not_traced.add(function)
        return None

    def step_key(
        self,
        step: float | None = None,
        integrator: str | None = None,
        coordinate_reduction: Reduction = False,
    ) -> Key:
        """The key of a step with these settings, for `source` and `compiled_function`; arguments as for
        `step`.
        """
        return self._step_key(step, integrator, coordinate_reduction)

    def prepare(self, function: str) -> None:
        """Compile a function now, for one world and for many worlds. function: its name."""
        check_key(function)
        key = self._step_key(None, None) if function == "step" else function
        for worlds in (1, 2):
            self._compiled(key).prepare(worlds=worlds)

    def _time(self, time: ArrayLike | None) -> list[np.ndarray]:
        """The input (..., 1) of the time, for mechanisms with time-dependent constraints."""
        timed = self._time_dependent
        if not timed:
            return []
        if time is None:
            raise SimulationError(
                f"{timed[0]} depends on the time t, and this step is given none: give it, time=..."
            )
        return [np.asarray(time)[..., None]]

    def _clock(self, time: ArrayLike) -> list[np.ndarray]:
        """The inputs of a rollout, for such mechanisms: the time at its beginning, and its clock."""
        given = self._time(time)
        return [*given, first_clock()] if given else []

    def _check_activation(self, activation: ArrayLike) -> None:
        """Raises ShapeError if no activations are given and the mechanism has some."""
        if self._has_activations:
            validation.check_activation(self.mechanism, activation)

    def _step_key(
        self, step: float | None, integrator: str | None, coordinate_reduction: Reduction = False
    ) -> tuple[Any, ...]:
        """The key of the program of a step, from validated settings."""
        options = self.mechanism.options
        h: Any = options.timestep if step is None else step
        integrator = options.integrator if integrator is None else integrator
        check_step(h, integrator)
        independent = independent_velocities(self.mechanism, coordinate_reduction)
        key = ("step", float(h), integrator)
        return key if independent is None else (*key, independent or True)

    def _key_and_outputs(
        self,
        kind: str,
        step: float | None,
        integrator: str | None,
        coordinate_reduction: Reduction,
        outputs: Sequence[str],
    ) -> tuple[Any, tuple[str, ...]]:
        """The key of a "step" or "rollout" with these settings and outputs, and the outputs in their order.

        Settings that were valid before are not validated again.
        """
        given = (
            kind,
            type(step),
            step,
            integrator,
            type(coordinate_reduction),
            coordinate_reduction,
            outputs,
        )
        try:
            return self._step_keys[given]
        except (KeyError, TypeError):  # lists have no hash
            pass
        options, wanted = self._step_key(step, integrator, coordinate_reduction)[1:], checked_outputs(outputs)
        found = (f"{kind}_outputs", wanted, *options) if wanted else (kind, *options), wanted
        with suppress(TypeError):
            self._step_keys[given] = found
        return found

    def _rollouts_of(
        self,
        step: float | None,
        integrator: str | None,
        coordinate_reduction: Reduction,
        outputs: Sequence[str],
    ) -> tuple[KeptRollouts, list[np.ndarray], tuple[str, ...]]:
        """The rollouts with these settings, the row statuses that they begin with, and the outputs in their
        order.
        """
        given = (type(step), step, integrator, type(coordinate_reduction), coordinate_reduction, outputs)
        try:
            return self._rollouts[given]
        except (KeyError, TypeError):  # lists have no hash
            pass
        key, wanted = self._key_and_outputs("rollout", step, integrator, coordinate_reduction, outputs)
        by_key = ("rollouts", key)
        if by_key not in self._rollouts:
            function = self._compiled(key)
            rollouts = KeptRollouts(function, ("q", "v", "activation", *wanted))
            self._rollouts[by_key] = rollouts, empty_warm_start(function.program), wanted
        with suppress(TypeError):
            self._rollouts[given] = self._rollouts[by_key]
        return self._rollouts[by_key]

    def _call(self, key: Key, arrays: tuple[Any, ...], params: Parameters | None) -> Any:
        try:
            function = self._functions[key]
        except KeyError:
            function = self._compiled(key)
        if params is not None or self._symbolic:
            arrays = (*arrays, *self._parameters(params))
        found = function.direct(arrays)  # which refuses labelled arrays
        if found is not None:
            return found
        if not PLAIN.issuperset(map(type, arrays)):
            arrays = tuple(self._without_labels(key, arrays))
        return function(*arrays)

    def _without_labels(self, key: Key, arrays: Sequence[Any]) -> list[Any]:
        """The inputs of a program, those with labels in the order of the mechanism's elements."""
        names = [port.name for port in self._program(key).inputs]
        known = [self._positional(x, name) if name in ARGUMENTS else x
                 for name, x in zip(names, arrays, strict=False)]  # fmt: skip
        return [*known, *arrays[len(known) :]]

    def _positional(self, value: Any, argument: str, name: str | None = None) -> Any:
        """The value of an argument of the table, that with labels in the order of the mechanism's elements.

        name: for errors, by default that in the table. Raises ShapeError.
        """
        return ARGUMENTS[argument].without_labels(self.mechanism, value, name or argument)

    def _parameters(self, params: Parameters | None) -> list[np.ndarray]:
        values = parameter_array(self.mechanism, params)
        return [values] if self._symbolic else []

    def _compiled(self, key: Key) -> Any:
        check_key(key)
        if key not in self._functions:
            self._functions[key] = ShapedFunction.of(self._program(key), self.settings)
        return self._functions[key]

    def _program(self, key: Key) -> Program:
        check_key(key)
        if key == "step":
            key = self._step_key(None, None)
        if key not in self._programs:
            self._programs[key] = program_of(self.mechanism, key)
        return self._programs[key]

    def _inputs(self, control: ArrayLike | None, activation: ArrayLike | None) -> list[ArrayLike]:
        """Control and activation, zero where they are None."""
        given = (("control", control), ("activation", activation))
        return [
            np.zeros(ARGUMENTS[name].shape_in(self.mechanism))
            if value is None
            else validation.real_values(self._positional(value, name), name)
            for name, value in given
        ]

    def __repr__(self) -> str:
        ready = ", ".join(str(key) for key in self._functions) or "nothing yet"
        return f"<compiled {self.mechanism!r}: {ready}>"


SOURCES: dict[str, Callable[[Program, Mapping[str, Any]], str]] = {
    "llvm": lambda program, settings: CompiledFunction(program, **settings).text(),
    "c": lambda program, settings: c.source(program, dtype=settings["dtype"]),
    "ptx": lambda program, settings: ptx.ptx(program, settings["dtype"]),
}
