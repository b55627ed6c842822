"""Validation of numbers, vectors and matrices; vectors and matrices are stored as nested tuples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from zwang.algebra import rotations
from zwang.errors import DescriptionError
from zwang.mechanism.type_validation import short_repr
from zwang.scalar import (
    are_constant,
    exact_value,
    is_scalar,
    maximum,
    minimum,
    number_of_constant,
    reason_not_real,
)

Number = Any
SOLIMP_NAMES = ("d0", "d_width", "width", "midpoint", "power")
SOLIMP_BOUNDS = ((0, 1), (0, 1), (0, None), (0, 1), (1, None))
if TYPE_CHECKING:  # what constructors accept
    Numbers = Sequence[Number] | np.ndarray
    Names = Sequence[str]
    Interval = Sequence[Number] | np.ndarray
    Vector3 = Sequence[Number] | np.ndarray
    Matrix3 = Sequence[Sequence[Number]] | np.ndarray
else:  # what they store, and validate their arguments against
    Numbers = "tuple[Number, ...]"
    Names = "tuple[str, ...]"
    Interval = "tuple[Number, Number]"
    Vector3 = tuple[Number, Number, Number]
    Matrix3 = tuple[Vector3, Vector3, Vector3]

LARGEST_INTEGER = 2**53  # larger integers are converted to floats
IDENTITY: Matrix3 = ((1, 0, 0), (0, 1, 0), (0, 0, 1))


class FrozenArray:
    """An immutable array (n, columns) or, for columns 0, (n,) of floats or integers, as for a mesh.

    It compares by value, its elements are rows as tuples or numbers, and `numpy.asarray` reads it without a
    copy.
    """

    __slots__ = ("_array",)

    def __init__(self, values: Any, columns: int, kind: type = float):
        array = np.array(values, dtype=np.float64 if kind is float else np.int64)
        self._array = array if array.size else array.reshape((0, columns) if columns else (0,))
        self._array.setflags(write=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._array, dtype=dtype) if copy else np.asarray(self._array, dtype=dtype)

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Any]:
        rows = self._array.tolist()
        return iter(rows) if self._array.ndim == 1 else (tuple(row) for row in rows)

    def __getitem__(self, index: int) -> Any:
        row = self._array[index].tolist()
        return tuple(row) if isinstance(row, list) else row

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenArray) and np.array_equal(self._array, other._array)

    def __hash__(self) -> int:
        return hash((self._array.shape, self._array.tobytes()))

    def __repr__(self) -> str:
        return f"<{len(self)} numbers>" if self._array.ndim == 1 else f"<{len(self)} rows of {self.shape[1]}>"


def number(value: Any, where: str, *, infinite: bool = False) -> Number:
    """`value` as a Python number or a symbolic expression.

    Raises DescriptionError for strings, NaN and, unless `infinite`, infinity.
    """
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is not float and type(value) is not int:
        value = _scalar(value, where)
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        value = float(value) if abs(value) < 2**1023 else math.inf
    if isinstance(value, (int, float)):
        if math.isnan(value) or (math.isinf(value) and not infinite):
            raise DescriptionError(f"{where} is {value}; it must be a finite number")
    return value


def _scalar(value: Any, where: str) -> Number:
    """`value`, a NumPy scalar or a real symbolic expression, as a Python number or an expression.

    A number of SymPy becomes an integer or an `ExactNumber`. Raises DescriptionError for other values.
    """
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        kind = getattr(getattr(value, "dtype", None), "kind", "O")
        value = value if kind in "mM" else value.item()  # datetime64 and timedelta64 are not numbers
    if isinstance(value, Fraction):
        value = value.numerator / value.denominator if abs(value) < 2**1023 else math.inf
    if isinstance(value, bool | np.timedelta64) or not is_scalar(value):
        raise DescriptionError(f"{where} is {value!r}; it must be a real number or a symbolic expression")
    if reason := reason_not_real(value):
        raise DescriptionError(f"{where} is {short_repr(value)}, which {reason}; it must be real and finite")
    try:
        return number_of_constant(value)
    except TypeError:
        raise DescriptionError(f"{where} is {short_repr(value)}, which has no real value") from None


def bounded(
    value: Any,
    where: str,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
) -> Number:
    """`value` as a finite number or a symbolic expression.

    Raises DescriptionError for a number less than `least`, not greater than `above`, or greater than `most`.
    """
    value = number(value, where)
    if are_constant(value):
        if least is not None and not value >= least:
            raise DescriptionError(f"{where} is {value}; it must be at least {least}")
        if above is not None and not value > above:
            raise DescriptionError(f"{where} is {value}; it must be greater than {above}")
        if most is not None and not value <= most:
            raise DescriptionError(f"{where} is {value}; it must be at most {most}")
    return value


def integer(value: Any, where: str, *, least: int | None = None) -> int:
    """`value` as an int.

    Raises DescriptionError for other types (3.0, True), or a value less than `least`.
    """
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, int | np.integer):
        raise DescriptionError(f"{where} is {value!r}; it must be an integer")
    if least is not None and value < least:
        raise DescriptionError(f"{where} is {value}; it must be at least {least}")
    return int(value)


def boolean(value: Any, where: str) -> bool:
    """`value` as a bool. Raises DescriptionError for other types."""
    if not isinstance(value, bool | np.bool_):
        raise DescriptionError(f"{where} is {value!r}; it must be True or False")
    return bool(value)


def number_tuple(values: Any, where: str, *, least: int = 1, most: int | None = None) -> tuple[Number, ...]:
    """`values` as a tuple of `least` to `most` numbers. Raises DescriptionError."""
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise DescriptionError(f"{where} is {short_repr(values)}; give a sequence of numbers, such as (0, 1)")
    if len(values) < least or (most is not None and len(values) > most):
        expected = (
            f"at least {least}" if most is None else f"{least}" if most == least else f"{least} to {most}"
        )
        raise DescriptionError(f"{where} has {len(values)} numbers; it must have {expected}")
    return vector(values, len(values), where)


def checked_solref(values: Any, where: str) -> tuple[Number, Number]:
    """`values` as solref, in one of MuJoCo's two formats, see `Softness`. Raises DescriptionError."""
    first, second = vector(values, 2, where)
    if are_constant(first, second):
        direct = first <= 0 and second <= 0 and (first != 0 or second != 0)
        if not direct and not (first > 0 and second > 0):
            raise DescriptionError(
                f"{where} is ({first}, {second}); give (time constant, damping ratio), both positive, or "
                "(-stiffness, -damping), neither positive and not both 0"
            )
    return first, second


def checked_solimp(values: Any, where: str) -> tuple[Number, ...]:
    """`values` as solimp = (d0, d_width, width, midpoint, power), see `Softness`. Raises DescriptionError."""
    named = zip(vector(values, 5, where), SOLIMP_NAMES, SOLIMP_BOUNDS, strict=True)
    return tuple(bounded(x, f"{name} in {where}", least=low, most=high) for x, name, (low, high) in named)


def clipped_solimp(values: Sequence[Any]) -> tuple[Any, ...]:
    """`values` as solimp, clipped to its ranges as in MuJoCo, see `Softness`; NaN is preserved."""
    named = zip(values, SOLIMP_BOUNDS, strict=True)
    return tuple(maximum(x if high is None else minimum(x, high), low) for x, (low, high) in named)


def vector(values: Any, length: int, where: str) -> tuple[Number, ...]:
    """`values` as a tuple of `length` numbers. Raises DescriptionError."""
    try:
        items = tuple(values)
    except TypeError:
        raise DescriptionError(f"{where} is {values!r}; it must have {length} numbers") from None
    if isinstance(values, str) or len(items) != length:
        raise DescriptionError(f"{where} is {values!r}; it must have {length} numbers, not {len(items)}")
    return tuple(number(item, where) for item in items)


def with_floats(values: Sequence[Number]) -> tuple[Number, ...]:
    """`values` with integers as floats, so that an array of them is one of floats."""
    return tuple(float(x) if type(x) is int else x for x in values)


def exact_array(values: Numbers) -> np.ndarray:
    """`values` as an array, with whole floats as integers, which are structural zeros and ones in an
    algorithm.
    """
    return np.array([int(x) if type(x) is float and x.is_integer() else x for x in values])


def matrix3(values: Any, where: str) -> Matrix3:
    """`values` as a 3x3 matrix. Raises DescriptionError for another shape."""
    try:
        rows = tuple(values)
    except TypeError:
        rows = ()
    if len(rows) != 3:
        raise DescriptionError(f"{where} is {values!r}; it must be a 3x3 matrix")
    return tuple(vector(row, 3, where) for row in rows)  # type: ignore[return-value]


def orientation_of(value: Any, where: str) -> Matrix3:
    """`value`, a quaternion (w, x, y, z) or a rotation matrix, as a rotation matrix.

    A numeric quaternion is normalised. Raises DescriptionError for other shapes, a zero quaternion, or a
    matrix that is not a rotation.
    """
    rows = rotations.elements(value)
    if len(rows) not in (3, 4) or (len(rows) == 3 and any(is_scalar(row) for row in rows)):
        raise DescriptionError(
            f"{where} is {value!r}; give a quaternion (w, x, y, z) or a 3x3 rotation matrix, "
            "such as zwang.algebra.rotations.from_rpy(roll, pitch, yaw)"
        )
    if len(rows) == 4:
        quaternion = rotations.unit_quaternion(vector(rows, 4, where), where)
        return matrix3(rotations.from_quaternion([exact_value(x) for x in quaternion]), where)
    matrix = matrix3(rows, where)
    rotations.check_rotation(matrix, where)
    return matrix
