"""Records that add, subtract and scale field by field."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from featherjet.jit.graph import Graph
from featherjet.math.fieldwise import Additive, Linear
from featherjet.math.spatial import Force
from featherjet.math.vec3 import Mat3, Vec3


@dataclass(slots=True, eq=False)
class Pair(Linear):
    a: float
    b: Vec3


@dataclass(slots=True, eq=False)
class Longer(Pair):
    c: Force


@dataclass(slots=True, eq=False)
class Sum(Additive):
    a: float


def entries(x: Pair) -> list:
    return [x.a, x.b.x, x.b.y, x.b.z]


def test_every_field_takes_part() -> None:
    p, q = Pair(1.0, Vec3(2.0, 3.0, 4.0)), Pair(10.0, Vec3(20.0, 30.0, 40.0))
    assert entries(p + q) == [11.0, 22.0, 33.0, 44.0]
    assert entries(q - p) == [9.0, 18.0, 27.0, 36.0]
    assert entries(-p) == [-1.0, -2.0, -3.0, -4.0]
    assert entries(3.0 * p) == [3.0, 6.0, 9.0, 12.0]


def test_fields_of_the_base_come_first_and_the_class_is_kept() -> None:
    x = Longer(1.0, Vec3(2.0, 3.0, 4.0), Force(Vec3(5.0, 6.0, 7.0), Vec3(8.0, 9.0, 10.0)))
    total = x + x
    assert type(total) is Longer
    assert (total.a, total.b.z, total.c.ang.x, total.c.lin.z) == (2.0, 8.0, 10.0, 20.0)


def test_records_stay_slotted_and_what_is_not_linear_does_not_scale() -> None:
    assert not hasattr(Pair(1.0, Vec3(0.0, 0.0, 0.0)), "__dict__")
    assert (Sum(1.0) + Sum(2.0)).a == 3.0
    with pytest.raises(TypeError):
        2.0 * Sum(1.0)  # type: ignore[operator]


def test_numpy_scalars_arrays_and_tracers_scale_records() -> None:
    v = Vec3(1.0, 2.0, 3.0)
    assert (np.float64(2.0) * v).z == 6.0
    assert np.array_equal((np.array([1.0, 2.0]) * v).y, [2.0, 4.0])
    graph = Graph()
    s = graph.load("s")
    root = (s * v + v).y.index
    assert graph.interpret([root], lambda at: 5.0) == [12.0]


def test_skew_is_the_cross_product_and_arrays_keep_their_type() -> None:
    a, b = Vec3(1.0, -2.0, 3.0), Vec3(0.5, 4.0, -1.0)
    turned, cross = Mat3.skew(a) @ b, a.cross(b)
    assert (turned.x, turned.y, turned.z) == (cross.x, cross.y, cross.z)
    x = np.arange(4, dtype=np.float32)
    A = Mat3.skew(Vec3(x, 1.0, 2.0)).to_array()
    assert A.shape == (4, 3, 3)
    assert A.dtype == np.float32
    assert np.array_equal(A[:, 2, 1], x)
    assert np.array_equal(A, -np.swapaxes(A, -1, -2))
