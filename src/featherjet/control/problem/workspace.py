"""Arrays that a thread writes into as it evaluates a problem: each has its own, so that all may use the problem."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..compiled.exact_hessian import add_second_derivatives
from ..compiled.motion import PhaseMotion
from ..compiled.phase import CompiledPhase
from ..compiled.replay import DIRECT, Direct, Replay
from ..compiled.rollout import Phased, Rollout
from ..horizon import Quadratic, Values

Array = np.ndarray
NO_MOTIONS: list[PhaseMotion] = []


class Sized(Phased, Protocol):
    """What a workspace needs of a problem; every: its phases and its last state."""

    every: list[CompiledPhase]
    ndx: int
    ne: int
    ni: int
    exact: bool


class Workspace(threading.local):
    """The derivatives of a problem, for each shape of a batch, and the last rollout of a single problem."""

    def __init__(self, problem: Sized) -> None:
        self.problem = problem
        self.linearizations: dict[tuple[int, ...], Linearization] = {}
        self.rollout: Rollout | None = None

    def roll_out(self, batch: tuple[int, ...]) -> Rollout:
        """What rolls out: for one problem the same again and again."""
        if batch:
            return Rollout(self.problem, batch)
        self.rollout = self.rollout or Rollout(self.problem, ())
        return self.rollout

    def rolled_out(self, xs: Array, us: Array) -> list[PhaseMotion]:
        """The motions of all phases if the last rollout of one problem went through these states; else none."""
        if self.rollout is None or not self.rollout.went_through(xs, us):
            return NO_MOTIONS
        return self.rollout.motions


class DerivativePass(NamedTuple):
    """All steps from states and controls to derivatives: what was rolled out before, motions, and results of terms."""

    steps: Direct
    rolled_out: Sequence[PhaseMotion]
    motions: list[PhaseMotion]
    results: list[dict[str, Array]]


class Linearization:
    """The states and controls at which a problem is differentiated, its derivatives, and the steps to them."""

    def __init__(self, problem: Sized, batch: tuple[int, ...]) -> None:
        self.problem, self.quadratic = problem, new_quadratic(problem, batch)
        self.xs, self.us = np.empty((*batch, problem.T + 1, problem.nx)), np.empty((*batch, problem.T, problem.nu))
        self.passes: dict[bool, DerivativePass] = {}  # that which goes on from a rollout, and that which does not

    def __call__(self, xs: Array, us: Array, rolled_out: Sequence[PhaseMotion], costates: Array | None) -> Quadratic:
        """The derivatives at states and controls; recording steps pays if they are taken again, as in an iteration."""
        self.xs[...], self.us[...] = xs, us
        last = self.passes.get(bool(rolled_out))
        if last is not None and last.rolled_out is rolled_out and isinstance(last.steps, Replay):
            last.steps()
        else:
            last = self.passes[bool(rolled_out)] = self.take(DIRECT if last is None else Replay(), rolled_out)
        if self.problem.exact and costates is not None:
            for phase, m, results in zip(self.problem.every, last.motions, last.results, strict=True):
                add_second_derivatives(phase, m, costates, self.quadratic, results)
        return self.quadratic

    def take(self, steps: Direct, rolled_out: Sequence[PhaseMotion] = NO_MOTIONS) -> DerivativePass:
        """Take all steps to the derivatives."""
        motions, results = [], []
        for k, phase in enumerate(self.problem.every):
            m = rolled_out[k].followed_by(steps) if rolled_out else phase.motion(self.xs, self.us, steps=steps)
            results.append(phase.write_derivatives(m, self.quadratic))
            motions.append(m)
        return DerivativePass(steps, rolled_out, motions, results)


def new_values(problem: Sized, batch: tuple[int, ...]) -> Values:
    """Arrays for values; constraints that a knot does not have hold."""
    T, ne, ni = problem.T, problem.ne, problem.ni
    return Values(
        next=np.empty((*batch, T, problem.nx)), cost=np.empty((*batch, T + 1)),
        equality=np.zeros((*batch, T + 1, ne)) if ne else None,
        inequality=np.full((*batch, T + 1, ni), -1.0) if ni else None,
    )  # fmt: skip


def new_quadratic(problem: Sized, batch: tuple[int, ...]) -> Quadratic:
    """Arrays for derivatives; knots without controls have ones in Luu, and no other derivatives by controls."""
    T, ndx, nu = problem.T, problem.ndx, problem.nu

    def zeros(*shape: int) -> Array:
        return np.zeros((*batch, *shape))

    rows = {"E": problem.ne, "I": problem.ni}
    by_x = {f"{k}x": zeros(T + 1, n, ndx) for k, n in rows.items() if n}
    by_u = {f"{k}u": zeros(T, n, nu) for k, n in rows.items() if n}
    out = Quadratic(
        **vars(new_values(problem, batch)), Fx=zeros(T, ndx, ndx), Fu=zeros(T, ndx, nu), Lx=zeros(T + 1, ndx),
        Lu=zeros(T, nu), Lxx=zeros(T + 1, ndx, ndx), Lxu=zeros(T, ndx, nu), Luu=zeros(T, nu, nu), **by_x, **by_u,
    )  # fmt: skip
    out.Luu[...] = np.eye(nu)
    return out
