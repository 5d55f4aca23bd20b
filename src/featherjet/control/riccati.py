"""The backward pass: gains and value function of a quadratic horizon, by compiled code (`jit/emit/riccati.py`)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache

import numpy as np

from ..arrays import Array
from ..jit.emit.riccati import COUNTS, emit_riccati, words, work
from ..jit.engine import Library, target
from ..jit.library import library
from ..jit.objects import ModuleText, sources
from .horizon import Quadratic

INPUTS = ("Fx", "Fu", "Lx", "Lu", "Lxx", "Lxu", "Luu")


@dataclass
class Gains:
    """A policy u = us - alpha k - K (x (-) xs), and the value function around xs, for p problems.

    k (p, T, nu), K (p, T, nu, ndx), Vx (p, T + 1, ndx), Vxx (p, T + 1, ndx, ndx);
    slope (p,), bend (p,): sum_t Qu^T k and sum_t k^T Quu k; without gaps, a step of length alpha gains
    alpha slope - alpha^2 bend / 2;
    failed (p,): one where some Quu is not positive definite, which leaves the rest undefined; else zero.
    """

    K: Array
    k: Array
    Vx: Array
    Vxx: Array
    slope: Array
    bend: Array
    failed: Array

    def __getitem__(self, which: slice) -> Gains:
        return Gains(**{f.name: getattr(self, f.name)[which] for f in fields(self)})


class Riccati:
    """Backward passes over T knots, of up to `most` problems at a time; each overwrites the gains of the one before.

    bounded: whether controls have limits.
    """

    def __init__(self, T: int, ndx: int, nu: int, most: int = 1, bounded: bool = False) -> None:
        new = np.zeros
        self._code = code(target().name, ndx, nu, bounded)
        self._run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._code.address("entry"))
        self._gains = Gains(
            K=new((most, T, nu, ndx)), k=new((most, T, nu)), Vx=new((most, T + 1, ndx)),
            Vxx=new((most, T + 1, ndx, ndx)), slope=new(most), bend=new(most),
            failed=new(most),
        )  # fmt: skip
        self._regularisation, self._none = new(most), new((most, T + 1, ndx))
        self._work = new(sum(work(ndx, nu, bounded).values()))
        self._at = {x: i for i, x in enumerate(words(ndx, nu, bounded))}
        self._job = np.zeros(len(self._at), np.int64)
        self._job[: len(COUNTS)] = 0, T, 0
        self._address = self._job.ctypes.data
        own = {f.name: getattr(self._gains, f.name) for f in fields(Gains)}
        for name, x in {**own, "regularisation": self._regularisation, "work": self._work, "f": self._none}.items():
            self._job[self._at[name]] = x.ctypes.data

    def __call__(
        self,
        horizon: Quadratic,
        gaps: Array | None,
        regularisation: Array,
        bounds: tuple[Array, Array] | None = None,
    ) -> Gains:
        """Gains of p problems; the regularisation (p,) is added to the diagonals of Quu and Vxx.

        bounds: the least and the most by which controls may change, (p, T, nu) each.
        """
        p = len(regularisation)
        self._regularisation[:p] = regularisation
        given = {x: np.ascontiguousarray(getattr(horizon, x)) for x in INPUTS}
        given["f"] = self._none if gaps is None else np.ascontiguousarray(gaps)
        if bounds is not None:
            given["low"], given["high"] = map(np.ascontiguousarray, bounds)
        for name, x in given.items():
            self._job[self._at[name]] = x.__array_interface__["data"][0]  # half the time of x.ctypes.data
        self._job[self._at["problems"]], self._job[self._at["gaps"]] = p, gaps is not None
        self._run(self._address)
        return self._gains if p == len(self._regularisation) else self._gains[:p]


@cache
def code(cpu_name: str, ndx: int, nu: int, bounded: bool) -> Library:
    """The recursion for a size, on the CPU of that name."""
    cpu = target()

    def make() -> Iterator[ModuleText]:
        return sources(emit_riccati(ndx, nu, bounded, cpu.lanes, cpu.platform))

    return library(cpu, ("riccati", ndx, nu, bounded), f"the Riccati recursion of {ndx} states and {nu} controls", make)
