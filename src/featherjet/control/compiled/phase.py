"""A phase ready to be evaluated: the robot, the code of its terms and steps, and their numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

import numpy as np

from ...jit.kernel import Kernel
from ..horizon import Quadratic, Values
from ..residuals.signals import KINDS, SignalInput, SignalSlopes
from .gauss_newton import GaussNewtonSum
from .integrators import euler_kernel, euler_slopes_kernel
from .motion import PhaseMotion
from .pickled import DropsCode
from .replay import DIRECT, Direct
from .residual_hessians import ResidualHessians
from .robot import PhaseRobot
from .runge_kutta import RungeKutta
from .terms import OF_Q, OTHER, TracedTerms

Array = np.ndarray


class CompiledPhase(DropsCode):
    """The knots of a phase, of an impact, or the last one, and the code that evaluates them.

    data: numbers of the terms (..., knots, width); dt: duration of a knot [s]; start: which knot of the horizon is the
    first.
    """

    def __init__(self, robot: PhaseRobot, terms: TracedTerms, data: Array, dt: float, start: int = 0) -> None:
        self.robot, self.terms, self.data, self.start = robot, terms, data, start
        self.dt = np.array([dt])

    def replaced(self, data: Array, start: int) -> CompiledPhase:
        """The same with other numbers, or fewer knots, at another place of a horizon."""
        other = CompiledPhase.__new__(CompiledPhase)
        other.__dict__.update(self.__dict__)
        other.data, other.start = data, start
        return other

    @property
    def knots(self) -> int:
        """How many knots it has."""
        return self.data.shape[-2]

    @property
    def stop(self) -> int:
        """The knot of the horizon after its last one."""
        return self.start + self.data.shape[-2]

    @property
    def at(self) -> slice:
        """Its knots among those of the horizon."""
        return slice(self.start, self.stop)

    def is_end_of(self, horizon: Values) -> bool:
        """Whether it is the last state of a horizon, after which there is no next one."""
        return self.start == horizon.next.shape[-2]

    def motion(
        self, xs: Array, us: Array, dynamics: tuple[Array, Array] | None = None, steps: Direct = DIRECT
    ) -> PhaseMotion:
        """The robot at its knots of states (..., T + 1, nx) and controls (..., T, nu) of a horizon.

        dynamics: accelerations and forces, if they have been computed before.
        """
        results = {} if dynamics is None else {"dynamics": dynamics}
        return PhaseMotion(self.robot, xs[..., self.at, :], us[..., self.at, :], results, steps)

    # Values

    def write_values(self, m: PhaseMotion, out: Values) -> None:
        """Write next states, costs and constraints at its knots."""
        self._write(self.term_values(m), out, m.steps)
        if not self.is_end_of(out):
            out.next[..., self.at, :] = self.next(m)

    def term_values(self, m: PhaseMotion, out: tuple[Array, ...] | None = None) -> dict[str, Array]:
        """The costs by term (..., knots, terms), and constraints by name; `out`: arrays to write them into."""
        results = m.steps.run(self.terms.values_kernel, *self.terms.inputs_at(m, self.data), out=out)
        return dict(zip(("costs", *self.terms.constraint_shapes), results, strict=True))

    def _write(self, results: dict[str, Array], out: Values, steps: Direct) -> None:
        """Write the sums of costs, and constraints."""
        steps.do(partial(results["costs"].sum, -1, out=out.cost[..., self.at]))
        for name in self.terms.constraint_shapes:
            whole, part = getattr(out, name), results[name]
            steps.do(partial(np.copyto, whole[..., self.at, : part.shape[-1]], part))

    def next(self, m: PhaseMotion) -> Array:
        """The states (..., knots, nx) after each knot."""
        if self.robot.hits:
            return np.concatenate([m.q, m.v + m.a], -1)
        if self.runge_kutta is not None:
            return self.runge_kutta.next(m, float(self.dt[0]))
        return self.step.values(m.x, m.a, self.dt)[0]

    @cached_property
    def runge_kutta(self) -> RungeKutta | None:
        """The integrator, if it has several stages."""
        return None if self.robot.integrator == "euler" else RungeKutta(self.robot, self.robot.integrator)

    @cached_property
    def step(self) -> Kernel:
        return euler_kernel(self.robot.size.places)

    @cached_property
    def step_slopes(self) -> Kernel:
        return euler_slopes_kernel(self.robot.size, self.robot.driven)

    @cached_property
    def residual_hessians(self) -> ResidualHessians:
        return ResidualHessians(self.terms)

    # Derivatives

    def write_derivatives(self, m: PhaseMotion, out: Quadratic) -> dict[str, Array]:
        """Write values and derivatives at its knots, with Gauss-Newton's Hessians; returns all results of its terms."""
        terms, steps, views = self.terms, m.steps, self.derivatives(out)
        batch = views["Lx"].shape[:-1]
        results = {k: views[k] if k in views else np.empty((*batch, *s)) for k, s in terms.shapes.items()}
        steps.run(terms.quadratic_kernel, *terms.inputs_at(m, self.data), out=tuple(results.values()))
        G = {e.name: KINDS[s.kind].slopes(m, s) for s, e in terms.signals.items()}
        if terms.groups[OF_Q]:
            steps.do(self._gauss_newton_sum(OF_Q, results, G, views))
        if terms.groups[OTHER] and self._combined:
            steps.do(lambda: self._add_combined(results, G, views))
        elif terms.groups[OTHER]:
            steps.do(self._gauss_newton_sum(OTHER, results, G, views))
        if "D" in results:
            steps.do(lambda: self._write_constraints(results["D"], G, out))
        self._write(results, out, steps)
        if not self.is_end_of(out):
            self._write_step(m, out.next[..., self.at, :], out.Fx[..., self.at, :, :], out.Fu[..., self.at, :, :])
        return results

    def derivatives(self, out: Quadratic) -> dict[str, Array]:
        """Views of its knots' derivatives of costs; those by controls only if it has controls."""
        views = {"Lx": out.Lx[..., self.at, :], "Lxx": out.Lxx[..., self.at, :, :]}
        if self.robot.size.nu:
            views |= {"Lu": out.Lu[..., self.at, :]}
            views |= {"Lxu": out.Lxu[..., self.at, :, :], "Luu": out.Luu[..., self.at, :, :]}
        return views

    def _write_step(self, m: PhaseMotion, next: Array, Fx: Array, Fu: Array) -> None:
        """Write the next states and their Jacobians."""
        runge_kutta, s = self.runge_kutta, m.slopes
        if runge_kutta is not None:
            m.steps.do(lambda: runge_kutta.linear(m, float(self.dt[0]), next, Fx, Fu))
        elif s.a_tau is not None:
            m.steps.run(self.step_slopes, m.x, m.a, self.dt, s.a_q, s.a_v, s.a_tau, out=(next, Fx, Fu))
        else:
            m.steps.do(self._linear_jump(m, next, Fx))

    def _linear_jump(self, m: PhaseMotion, next: Array, Fx: Array) -> Callable[[], None]:
        """Writes q, v + a, and [[1, 0], [a_q, 1 + a_v]]."""
        nq, nv, s, one = self.robot.size.nq, self.robot.size.nv, m.slopes, np.eye(self.robot.size.nv)
        Fx[..., :nv, :nv], Fx[..., :nv, nv:] = one, 0.0

        def write() -> None:
            next[..., :nq] = m.q
            np.add(m.v, m.a, next[..., nq:])
            Fx[..., nv:, :nv] = s.a_q
            np.add(s.a_v, one, Fx[..., nv:, nv:])

        return write

    def _gauss_newton_sum(
        self, group: str, results: dict[str, Array], G: dict[str, SignalSlopes], views: dict[str, Array]
    ) -> GaussNewtonSum:
        """Adds G^T g and G^T C G of a group of signals.

        Cones and limits cost nothing at most knots; these are left out.
        """
        nv, nu = self.robot.size.nv, self.robot.size.nu
        arrays = {"C": results[f"C {group}"], "g": results[f"g {group}"], **views}
        widths = (nv,) if group == OF_Q else (nv, nv, nu) if nu else (nv, nv)
        of_group = [G[e.name] for e in self.terms.groups[group]]
        return GaussNewtonSum(arrays, of_group, widths, nv if group == OF_Q else 2 * nv)

    def _add_combined(self, results: dict[str, Array], G: dict[str, SignalSlopes], views: dict[str, Array]) -> None:
        """The same, and X G + (X G)^T, of signals that a residual combines with q, v or u."""
        ndx = views["Lx"].shape[-1]
        J = self.stacked(G, self.terms.groups[OTHER])
        XJ = results["X"] @ J
        H = np.swapaxes(J, -1, -2) @ (results[f"C {OTHER}"] @ J) + XJ + np.swapaxes(XJ, -1, -2)
        g = (results[f"g {OTHER}"][..., None, :] @ J)[..., 0, :]
        views["Lx"][...] += g[..., :ndx]
        views["Lxx"][...] += H[..., :ndx, :ndx]
        if "Lu" in views:
            views["Lu"][...] += g[..., ndx:]
            views["Lxu"][...] += H[..., :ndx, ndx:]
            views["Luu"][...] += H[..., ndx:, ndx:]

    @cached_property
    def _combined(self) -> bool:
        """Whether a residual depends on q, v or u besides signals of the other group."""
        names = {e.name for e in self.terms.groups[OTHER]}
        return any(names & set(used) and {"x", "u"} & set(used) for used in self.terms.inputs_used)

    def stacked(self, G: dict[str, SignalSlopes], entries: list[SignalInput]) -> Array:
        """The Jacobians of signals below each other (..., rows, nd), columns of q, v and u."""
        nv, nu = self.robot.size.nv, self.robot.size.nu
        rows = []
        for e in entries:
            blocks = G[e.name]
            shape = blocks.q.shape[:-1]
            rows.append([np.zeros((*shape, n)) if x is None else x for x, n in zip(blocks, (nv, nv, nu), strict=True)])
        whole = [np.concatenate(row, -1) for row in rows]
        return whole[0] if len(whole) == 1 else np.concatenate(whole, -2)

    def _write_constraints(self, D: Array, G: dict[str, SignalSlopes], out: Quadratic) -> None:
        """Write the Jacobians of constraints."""
        nd, ne, ndx = self.terms.nd, self.terms.ne, 2 * self.robot.size.nv
        J = D[..., :nd]
        if self.terms.signals:
            J = J + D[..., nd:] @ self.stacked(G, list(self.terms.signals.values()))
        for by_x, by_u, rows in ((out.Ex, out.Eu, J[..., :ne, :]), (out.Ix, out.Iu, J[..., ne:, :])):
            if by_x is not None and by_u is not None:
                by_x[..., self.at, : rows.shape[-2], :] = rows[..., :ndx]
                if nd > ndx:
                    by_u[..., self.at, : rows.shape[-2], :] = rows[..., ndx:]
