"""A phase ready to be evaluated: compiled code of its terms and steps, and their numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...jit.kernel import Kernel
from ..residuals.signals import KINDS, SignalInput, SignalSlopes
from .gauss_newton import GaussNewtonSum
from .integrators import euler_kernel, euler_slopes_kernel
from .motion import PhaseMotion, PhaseRobot
from .pickled import DropsCode
from .replay import DIRECT, Direct
from .residual_hessians import ResidualHessians
from .runge_kutta import RungeKutta
from .terms import TracedTerms, inputs_at

Array = np.ndarray


class Blocks(NamedTuple):
    """Arrays that a stage fills with its knots' derivatives, views into those of the horizon; see `Quadratic`."""

    Lx: Array
    Lxx: Array
    Lu: Array | None = None
    Lxu: Array | None = None
    Luu: Array | None = None
    Fx: Array | None = None
    Fu: Array | None = None
    E: Array | None = None  # rows of equalities, columns of x then u
    I: Array | None = None


@dataclass
class Found:
    """Values at the knots of a stage."""

    costs: Array  # (..., knots, terms)
    equality: Array | None = None
    inequality: Array | None = None


class CompiledPhase(DropsCode):
    """The knots of a phase, of an impact, or the terminal one.

    data: numbers of the terms (..., knots, width); dt: of a knot [s].
    """

    def __init__(self, body: PhaseRobot, form: TracedTerms, data: Array, knots: int, dt: float) -> None:
        self.body, self.form, self.data, self.knots = body, form, data, knots
        self.dt = np.array([dt])

    def resized(self, data: Array) -> CompiledPhase:
        """The same with other numbers, or fewer knots."""
        other = CompiledPhase.__new__(CompiledPhase)
        other.__dict__.update(self.__dict__)
        other.data, other.knots = data, data.shape[-2]
        return other

    @cached_property
    def staged(self) -> RungeKutta | None:
        """The integrator, if it has several stages."""
        return None if self.body.integrator == "euler" else RungeKutta(self.body, self.body.integrator)

    @cached_property
    def bending(self) -> ResidualHessians:
        return ResidualHessians(self.form)

    def given(self, m: PhaseMotion) -> list[Array]:
        """The inputs of the terms' code."""
        return inputs_at(self.form, m, self.data)

    @cached_property
    def step(self) -> Kernel:
        return euler_kernel(self.body.size.places)

    @cached_property
    def step_slopes(self) -> Kernel:
        return euler_slopes_kernel(self.body.size, self.body.driven)

    def motion(
        self, x: Array, u: Array, known: tuple[Array, Array] | None = None, track: Direct = DIRECT
    ) -> PhaseMotion:
        return PhaseMotion(self.body, x, u, known, track)

    def next(self, m: PhaseMotion) -> Array:
        """States after each knot."""
        if self.body.hits:
            return np.concatenate([m.q, m.v + m.a], -1)
        if self.staged is not None:
            return self.staged.next(m, float(self.dt[0]))
        return self.step.values(m.x, m.a, self.dt)[0]

    def values(self, m: PhaseMotion, out: tuple[Array, ...] | None = None) -> Found:
        """Costs by term, and constraints; `out`: arrays to write them into."""
        costs, *limited = m.track.run(self.form.kernels[0], *inputs_at(self.form, m, self.data), out=out)
        return Found(costs, **dict(zip(self.form.limited, limited, strict=True)))

    def linear_step(self, m: PhaseMotion, next: Array, Fx: Array, Fu: Array) -> None:
        """Write the next states and their Jacobians."""
        staged, s = self.staged, m.slopes
        if staged is not None:
            m.track.do(lambda: staged.linear(m, float(self.dt[0]), next, Fx, Fu))
        elif s.a_tau is not None:
            m.track.run(self.step_slopes, m.x, m.a, self.dt, s.a_q, s.a_v, s.a_tau, out=(next, Fx, Fu))
        else:
            m.track.do(self._linear_jump(m, next, Fx))

    def _linear_jump(self, m: PhaseMotion, next: Array, Fx: Array) -> Callable[[], None]:
        """Writes q, v + a, and [[1, 0], [a_q, 1 + a_v]]."""
        nq, nv, s, one = self.body.size.nq, self.body.size.nv, m.slopes, np.eye(self.body.size.nv)
        Fx[..., :nv, :nv], Fx[..., :nv, nv:] = one, 0.0

        def write() -> None:
            next[..., :nq] = m.q
            np.add(m.v, m.a, next[..., nq:])
            Fx[..., nv:, :nv] = s.a_q
            np.add(s.a_v, one, Fx[..., nv:, nv:])

        return write

    def results(self, out: Blocks) -> dict[str, Array]:
        """Arrays for the results of the terms' code: those of the horizon, and others for what is between."""
        views = {k: getattr(out, k) for k in ("Lx", "Lxx", "Lu", "Lxu", "Luu")}
        batch = out.Lx.shape[:-1]
        return {k: views[k] if k in views else np.empty((*batch, *s)) for k, s in self.form.shapes.items()}

    def quadratic(self, m: PhaseMotion, out: Blocks, results: dict[str, Array]) -> Found:
        """Write the derivatives of costs and constraints; the values are returned."""
        form, track = self.form, m.track
        track.run(form.kernels[1], *inputs_at(form, m, self.data), out=tuple(results.values()))
        G = {e.name: KINDS[s.kind].slopes(m, s) for s, e in form.known.items()}
        if form.still:
            track.do(self._gauss_newton_sum("still", results, G, out))
        if form.moving and self._crossed:
            track.do(lambda: self._add_crossed(results, G, out))
        elif form.moving:
            track.do(self._gauss_newton_sum("moving", results, G, out))
        if "D" in results:
            track.do(lambda: self._constrain(results["D"], G, out))
        return Found(results["costs"], **{k: results[k] for k in form.limited})

    def _gauss_newton_sum(
        self, group: str, found: dict[str, Array], slopes: dict[str, SignalSlopes], out: Blocks
    ) -> GaussNewtonSum:
        """Adds G^T g and G^T C G of a group of signals; still ones depend on q alone.

        Cones and limits cost nothing at most knots; these are left out.
        """
        nv, nu, still = self.body.size.nv, self.body.size.nu, group == "still"
        given = {"C": found[f"C {group}"], "g": found[f"g {group}"], "Lx": out.Lx, "Lxx": out.Lxx}
        controls = {"Lu": out.Lu, "Lxu": out.Lxu, "Luu": out.Luu}
        given |= {k: x for k, x in controls.items() if x is not None}
        widths = (nv,) if still else (nv, nv, nu) if nu else (nv, nv)
        return GaussNewtonSum(
            given, [slopes[e.name] for e in getattr(self.form, group)], widths, nv if still else 2 * nv
        )

    def _add_crossed(self, found: dict[str, Array], slopes: dict[str, SignalSlopes], out: Blocks) -> None:
        """The same, and X G + (X G)^T, of signals that meet q, v or u in a residual; G (..., m, nd)."""
        ndx = out.Lx.shape[-1]
        G = self.stacked(slopes, self.form.moving)
        XG = found["X"] @ G
        H = np.swapaxes(G, -1, -2) @ (found["C moving"] @ G) + XG + np.swapaxes(XG, -1, -2)
        gG = (found["g moving"][..., None, :] @ G)[..., 0, :]
        out.Lx[...] += gG[..., :ndx]
        out.Lxx[...] += H[..., :ndx, :ndx]
        if out.Lu is not None and out.Lxu is not None and out.Luu is not None:
            out.Lu[...] += gG[..., ndx:]
            out.Lxu[...] += H[..., :ndx, ndx:]
            out.Luu[...] += H[..., ndx:, ndx:]

    @cached_property
    def _crossed(self) -> bool:
        """Whether a residual depends on q, v or u besides other signals that are not still."""
        names = {e.name for e in self.form.moving}
        return any(names & set(used) and {"x", "u"} & set(used) for used in self.form.used)

    def stacked(self, G: dict[str, SignalSlopes], entries: list[SignalInput]) -> Array:
        """The Jacobians of signals below each other, columns of q, v and u."""
        nv, nu = self.body.size.nv, self.body.size.nu
        rows = []
        for e in entries:
            blocks = G[e.name]
            shape = blocks.q.shape[:-1]
            widths = (nv, nv, nu)
            rows.append([np.zeros((*shape, n)) if x is None else x for x, n in zip(blocks, widths, strict=True)])
        whole = [np.concatenate(row, -1) for row in rows]
        return whole[0] if len(whole) == 1 else np.concatenate(whole, -2)

    def _constrain(self, D: Array, G: dict[str, SignalSlopes], out: Blocks) -> None:
        """Write the Jacobians of constraints: D has columns of q, v, u and all signals."""
        nd, ne = self.form.nd, self.form.ne
        J = D[..., :nd]
        if self.form.known:
            J = J + D[..., nd:] @ self.stacked(G, list(self.form.known.values()))
        if out.E is not None:
            out.E[..., :ne, :nd] = J[..., :ne, :]
        if out.I is not None:
            out.I[..., : self.form.ni, :nd] = J[..., ne:, :]


class Segment(NamedTuple):
    """A stage and the knots of the horizon that it has."""

    stage: CompiledPhase
    start: int
    stop: int

    @property
    def knots(self) -> slice:
        return slice(self.start, self.stop)
