"""The backward pass: gains and value function of a quadratic horizon, by compiled code (`jit/emit/riccati.py`)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache

import numpy as np

from ...arrays import Array
from ...jit.emit.riccati import COUNTS, emit_riccati, words, work
from ...jit.engine import Library, target
from ...jit.library import library
from ...jit.objects import ModuleText, sources
from ..horizon import Quadratic

INPUTS = ("Fx", "Fu", "Lx", "Lu", "Lxx", "Lxu", "Luu")


@dataclass
class Gains:
    """A policy u = us - alpha k - K (x (-) xs), and the value function around xs (+) gaps, for p problems.

    k (p, T, nu), K (p, T, nu, ndx), Vx (p, T + 1, ndx), Vf (p, T + 1, ndx): Vxx gaps, if there are any;
    Vxx (p, T + 1, ndx, ndx), if it was to be kept;
    slope (p,), bend (p,): sum_t Qu^T k and sum_t k^T Quu k; without gaps, a step of length alpha gains
    alpha slope - alpha^2 bend / 2;
    failed (p,): one where some Quu is not positive definite, which leaves the rest undefined; else zero.
    """

    K: Array
    k: Array
    Vx: Array
    Vf: Array
    Vxx: Array
    slope: Array
    bend: Array
    failed: Array


class Riccati:
    """Backward passes over T knots; each overwrites what the one before found for the same problems.

    most: how many problems there are; together: how many a pass takes, by default all. keep: whether Vxx is wanted.
    bounded: whether controls have limits.
    """

    def __init__(
        self,
        T: int,
        ndx: int,
        nu: int,
        most: int = 1,
        together: int | None = None,
        keep: bool = True,
        bounded: bool = False,
    ) -> None:
        new, together = np.zeros, together or most
        self._code = recursion_code(target().name, ndx, nu, bounded)
        self._run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._code.address("entry"))
        self.gains = Gains(
            K=new((most, T, nu, ndx)), k=new((most, T, nu)), Vx=new((most, T + 1, ndx)),
            Vf=new((most, T + 1, ndx)), Vxx=new((most, T + 1, ndx, ndx) if keep else (2, ndx, ndx)), slope=new(most),
            bend=new(most), failed=new(most),
        )  # fmt: skip
        self._keep, self._regularisation, self._none = keep, new(together), new((together, T + 1, ndx))
        self._work = new(sum(work(ndx, nu, bounded).values()))
        self._at = {x: i for i, x in enumerate(words(ndx, nu, bounded))}
        self._job = np.zeros(len(self._at), np.int64)
        self._job[: len(COUNTS)] = 0, T, 0, keep
        self._address = self._job.ctypes.data
        for name, x in {"regularisation": self._regularisation, "work": self._work, "f": self._none}.items():
            self._job[self._at[name]] = x.ctypes.data
        self._read: dict[str, Array] = {}  # the arrays that the job refers to; horizons use theirs again
        self._results = {f.name: getattr(self.gains, f.name) for f in fields(Gains)}
        self._set_first(0)

    def _set_first(self, first: int) -> None:
        """Let results begin at a problem."""
        self._first = first
        for name, x in self._results.items():
            start = first if name != "Vxx" or self._keep else 0
            self._job[self._at[name]] = x.ctypes.data + start * x.strides[0]

    def __call__(
        self,
        horizon: Quadratic,
        gaps: Array | None,
        regularisation: Array,
        bounds: tuple[Array, Array] | None = None,
        first: int = 0,
    ) -> Gains:
        """Gains of p problems, the first of which is number `first` of all.

        The regularisation (p,) is added to the diagonals of Quu and Vxx. bounds: the least and the most by which
        controls may change, (p, T, nu) each.
        """
        p = len(regularisation)
        self._regularisation[:p] = regularisation
        given = {x: getattr(horizon, x) for x in INPUTS}
        given["f"] = self._none if gaps is None else gaps
        if bounds is not None:
            given["low"], given["high"] = bounds
        for name, x in given.items():
            if x is not self._read.get(name):
                self._read[name] = x = np.ascontiguousarray(x)
                self._job[self._at[name]] = x.__array_interface__["data"][0]  # half the time of x.ctypes.data
        self._job[self._at["problems"]], self._job[self._at["gaps"]] = p, gaps is not None
        if first != self._first:
            self._set_first(first)
        self._run(self._address)
        return self.gains if p == len(self.gains.k) else self._part(slice(first, first + p))

    def _part(self, which: slice) -> Gains:
        return Gains(**{name: x if name == "Vxx" and not self._keep else x[which] for name, x in self._results.items()})


@cache
def recursion_code(cpu_name: str, ndx: int, nu: int, bounded: bool) -> Library:
    """The compiled recursion of one size, for the CPU of that name."""
    cpu = target()

    def make() -> Iterator[ModuleText]:
        return sources(emit_riccati(ndx, nu, bounded, cpu.lanes, cpu.platform))

    return library(cpu, ("riccati", ndx, nu, bounded), f"the Riccati recursion of {ndx} states and {nu} controls", make)
