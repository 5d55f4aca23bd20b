"""What a time step is made of, on batches of worlds: compiled code, or NumPy, one world at a time."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ..algorithms.contacts import feet, percussion
from ..algorithms.quantities import QUANTITIES
from ..contact.ground import Ground
from ..evaluate.evaluator import Evaluator
from ..jit.flags import Flag
from ..math.vec3 import Sym3, Vec3
from ..model.model import WORLD, Array
from ..treejit import program

SWEEPS = 2000
TOLERANCE = 1e-13
FEW = 2  # worlds: below this, NumPy's own dispatch costs more than a batch saves


class WorldStep(NamedTuple):
    """The state after a step (..., nq), (..., nv); percussions at feet (..., 3 n) [N s] in world axes.

    solver_report (..., 3): the largest change in the last sweep [N s], 1 if in flight else 0, the number of sweeps.
    held (..., stops, 2): percussions of dry friction and of limits.
    """

    q: Array
    v: Array
    P: Array
    solver_report: Array
    held: Array | None = None


class Struck(NamedTuple):
    """Velocities (..., nv) that obey the contact laws at the end of a step; the rest as in `WorldStep`."""

    v: Array
    P: Array
    solver_report: Array
    held: Array | None = None


class Engine(Protocol):
    """Steps and impacts; arguments as in `treejit.stepping.StepCompiler`. sweeps: the most that it makes in a step."""

    sweeps: int

    def approach(self, q: Array, v: Array, table: Array) -> tuple[Array, Array]: ...
    def step(
        self, q: Array, v: Array, tau: Array, soft: Array, table: Array, away: Array, start: Array, h: Array,
        stops: Array | None, held: Array | None,
    ) -> WorldStep: ...  # fmt: skip
    def strike(
        self, half: Array, v: Array, mid: Array, tau: Array, soft: Array, table: Array, height: Array, start: Array,
        h: Array, stops: Array | None, held: Array | None,
    ) -> Struck: ...  # fmt: skip
    def impact(self, law: str, q: Array, v: Array, table: Array, height: Array, start: Array) -> WorldStep: ...
    def balanced(self, q: Array, v: Array, end: Array, after: Array, tau: Array, h: Array) -> Array: ...


class Compiled:
    """Compiled code."""

    sweeps = program.SWEEPS

    def __init__(
        self, evaluator: Evaluator, ground: Ground, stops: tuple[int, ...] = (), balanced: bool = False
    ) -> None:
        self.evaluator = evaluator
        self.nq, self.nv, self.n = evaluator.model.nq, evaluator.model.nv, len(ground.feet)
        compiler = evaluator.compiler
        from ..treejit.stepping import StepCompiler

        record = QUANTITIES["integrate"]
        integrate = evaluator.kernel(record, [i.name for i in record.inputs])
        assert integrate is not None
        given = evaluator.tree, compiler.tables, integrate, compiler.target
        self.kernels = StepCompiler(*given, ground.core, stops, balanced)
        self.one = np.ones(1)
        self._direct: dict[Any, Any] = {}

    def _run(self, kernel: Any, inputs: list[Array], q: Array, v: Array) -> tuple[Array, ...]:
        if q.ndim == 1:  # one world: the code takes it, or says that it cannot
            direct = self._direct.get(kernel)
            if direct is None:
                direct = self._direct[kernel] = kernel.direct_call(inputs)
            found = direct(*inputs)
            if found is not None:
                return found
        results, flags = kernel(inputs, None, self.evaluator.threads)
        if flags & Flag.SMALL_MARGIN:
            self.evaluator.refuse_singular("forward_dynamics", {"q": q, "v": v, "tau": np.zeros(self.nv)})
        return results

    def approach(self, q: Array, v: Array, table: Array) -> tuple[Array, Array]:
        height, rate = self._run(self.kernels.approach, [q, v, table], q, v)
        return height, rate

    def step(
        self, q: Array, v: Array, tau: Array, soft: Array, table: Array, away: Array, start: Array, h: Array,
        stops: Array | None, held: Array | None,
    ) -> WorldStep:  # fmt: skip
        inputs = [q, v, tau, soft, table, away, start, h]
        if stops is not None and held is not None:
            inputs += [stops, held]
        return WorldStep(*self._run(self.kernels.step, inputs, q, v))

    def strike(
        self, half: Array, v: Array, mid: Array, tau: Array, soft: Array, table: Array, height: Array, start: Array,
        h: Array, stops: Array | None, held: Array | None,
    ) -> Struck:  # fmt: skip
        inputs = [half, v, mid, tau, soft, table, height, start, h]
        if stops is not None and held is not None:
            inputs += [stops, held]
        after, P, _, *rest = self._run(self.kernels.strike, inputs, half, v)
        return Struck(after, P, *rest)

    def impact(self, law: str, q: Array, v: Array, table: Array, height: Array, start: Array) -> WorldStep:
        kernel = getattr(self.kernels, law)
        after, P, solver_report = self._run(kernel, [q, v, table, height, start, self.one], q, v)
        return WorldStep(q, after, P, solver_report)

    def balanced(self, q: Array, v: Array, end: Array, after: Array, tau: Array, h: Array) -> Array:
        flight = np.array([0.0, 1.0, 0.0])
        return self._run(self.kernels.balanced, [q, v, end, after, tau, flight, h], q, v)[0]


class Reference:
    """The same with NumPy and dense matrices, one world at a time: the definition, and the way of robots that mimic."""

    sweeps = SWEEPS

    def __init__(
        self, evaluator: Evaluator, ground: Ground, stops: tuple[int, ...] = (), balanced: bool = False
    ) -> None:
        self.evaluate, self.ground, self.stops = evaluator, ground, list(stops)
        self.floats = balanced and sum(j.parent == WORLD for j in evaluator.model.joints) == 1

    def approach(self, q: Array, v: Array, table: Array) -> tuple[Array, Array]:
        height, rate = each(self._approach, (q, 1), (v, 1), (table, 2))
        return height, rate

    def _approach(self, q: Array, v: Array, table: Array) -> tuple[Array, Array]:
        feet = self.ground.footing(self.evaluate, q, table)
        normal, d, radius = table[:, :3], table[:, 3], table[:, 4]
        return (normal * feet.centres).sum(-1) - d - radius, (feet.J @ v)[2::3]

    def step(
        self, q: Array, v: Array, tau: Array, soft: Array, table: Array, away: Array, start: Array, h: Array,
        stops: Array | None, held: Array | None,
    ) -> WorldStep:  # fmt: skip
        cores = [(q, 1), (v, 1), (tau, 1), (soft, 1), (table, 2), (away, 1), (start, 1), (h, 1)]
        if stops is not None and held is not None:
            cores += [(stops, 2), (held, 2)]
        return WorldStep(*each(self._step, *cores))

    def _step(
        self, q: Array, v: Array, tau: Array, soft: Array, table: Array, away: Array, start: Array, h: Array,
        stops: Array | None = None, held: Array | None = None,
    ) -> tuple[Array, ...]:  # fmt: skip
        height, guess, dt = self._approach(q, v, table)[0] + away, v, float(h[0])
        found = Struck(v, start, np.zeros(3), held)
        for _ in range(2):
            half, mid = self.evaluate("integrate", q, dt / 2 * guess), (v + guess) / 2
            given = (half, v, mid, tau, soft, table, height, found.P, h)
            found = Struck(*self._strike(*given, *(() if stops is None else (stops, found.held))))
            guess = found.v
        after, move = found.v, dt * (v + (1.0 - 0.5 * found.solver_report[1]) * (found.v - v))
        end = self.evaluate("integrate", q, move)
        if found.solver_report[1]:
            after = self._balanced(q, v, end, after, tau, h)
        results = (end, after, found.P, found.solver_report)
        return results if found.held is None else (*results, found.held)

    def strike(
        self, half: Array, v: Array, mid: Array, tau: Array, soft: Array, table: Array, height: Array, start: Array,
        h: Array, stops: Array | None, held: Array | None,
    ) -> Struck:  # fmt: skip
        cores = [(half, 1), (v, 1), (mid, 1), (tau, 1), (soft, 1), (table, 2), (height, 1), (start, 1), (h, 1)]
        if stops is not None and held is not None:
            cores += [(stops, 2), (held, 2)]
        return Struck(*each(self._strike, *cores))

    def _strike(
        self, half: Array, v: Array, mid: Array, tau: Array, soft: Array, table: Array, height: Array, start: Array,
        h: Array, stops: Array | None = None, held: Array | None = None,
    ) -> tuple[Array, ...]:  # fmt: skip
        dt = float(h[0])
        M = self.evaluate("mass_matrix", half) + np.diag(soft)
        free = dt * np.linalg.solve(M, tau - self.evaluate("bias", half, mid))
        laws = [feet.Law(row, z, dt, Vec3(*P)) for row, z, P in zip(table, height, start.reshape(-1, 3), strict=True)]
        J = self.ground.footing(self.evaluate, half, table).J
        found = WorldProblem(M, J, v + free, v, laws, self.stops, stops, dt).solve(held)
        results = (v + free + found.jump, found.P, found.solver_report)
        return results if found.held is None else (*results, found.held)

    def impact(self, law: str, q: Array, v: Array, table: Array, height: Array, start: Array) -> WorldStep:
        kind = {"compression": feet.Compression, "restitution": feet.Restitution}[law]

        def one(q: Array, v: Array, table: Array, height: Array, start: Array) -> tuple[Array, ...]:
            laws = [kind(row, z, 1.0, Vec3(*P)) for row, z, P in zip(table, height, start.reshape(-1, 3), strict=True)]
            J = self.ground.footing(self.evaluate, q, table).J
            found = WorldProblem(self.evaluate("mass_matrix", q), J, v, v, laws, [], None, 1.0).solve(None)
            return v + found.jump, found.P, found.solver_report

        after, P, solver_report = each(one, (q, 1), (v, 1), (table, 2), (height, 1), (start, 1))
        return WorldStep(q, after, P, solver_report)

    def balanced(self, q: Array, v: Array, end: Array, after: Array, tau: Array, h: Array) -> Array:
        return each(lambda *x: (self._balanced(*x),), (q, 1), (v, 1), (end, 1), (after, 1), (tau, 1), (h, 1))[0]

    def _balanced(self, q: Array, v: Array, end: Array, after: Array, tau: Array, h: Array) -> Array:
        """By the centroidal momentum, whose columns of the base are an inertia."""
        if not self.floats:
            return after
        momentum = lambda q, v: self.evaluate("centroidal_momentum", q, v)  # noqa: E731
        model, dt = self.evaluate.model, float(h[0])
        want = momentum(q, v)
        want[:3] += dt * model.mass * np.asarray(model.gravity)[:3]
        for at in (q, end):
            columns = np.array([momentum(at, e) for e in np.eye(model.nv)[:6]]).T
            T = self.evaluate("forward_kinematics", at)[0]
            centre = self.evaluate("center_of_mass", at) - T[:3, 3]
            force, moment = T[:3, :3] @ tau[:3], T[:3, :3] @ tau[3:6]
            want += dt / 2 * np.concatenate([force, moment - np.cross(centre, force)])
        found = after.copy()
        found[:6] += np.linalg.solve(columns, want - momentum(end, after))
        return found


class Settled(NamedTuple):
    """Settled at feet and stops, the solver_report, and the jump of velocities."""

    P: Array
    held: Array | None
    solver_report: Array
    jump: Array = np.zeros(0)


class WorldProblem:
    """The percussions of one world: sweeps over feet and stops, on dense matrices."""

    def __init__(
        self, M: Array, J: Array, free: Array, before: Array, laws: list, dofs: list[int], stops: Array | None, h: float
    ) -> None:
        self.J, self.laws, self.dofs, self.stops, self.h = J, laws, dofs, stops, h
        rows = np.vstack([J, np.eye(len(M))[dofs]]) if stops is not None else J
        self.back = np.linalg.solve(M, rows.T)  # M^-1 J^T
        self.G, self.rows, self.free, self.before = rows @ self.back, rows, free, before

    def solve(self, held: Array | None) -> Settled:
        n, laws = len(self.laws), self.laws
        lands = np.zeros(len(self.G))
        lands[2 : 3 * n : 3] = [law.landing for law in laws]
        b = self.rows @ self.free + lands
        P = np.concatenate([[*vector(law.start)] for law in laws])
        stops = np.zeros((0, 2)) if held is None else held.copy()
        x = np.concatenate([P, stops.sum(-1)])
        blocks = [percussion.block(Sym3.from_array(self.G[k : k + 3, k : k + 3])) for k in range(0, 3 * n, 3)]
        size = np.abs(b) / np.maximum(np.diag(self.G), 1e-300)
        size[: 3 * n].reshape(n, 3)[b[2 : 3 * n : 3] >= 0] = 0.0  # feet that stay above the ground
        goal, worst, sweeps = TOLERANCE * size.max(initial=0.0), 0.0, 0
        while sweeps < SWEEPS:
            worst, sweeps = 0.0, sweeps + 1
            for k, (law, of) in enumerate(zip(laws, blocks, strict=True)):
                at = slice(3 * k, 3 * k + 3)
                new = vector(law.percussion(of, Vec3(*(self.G[at] @ x + b[at])), Vec3(*x[at])))
                worst, x[at] = max(worst, float(np.abs(new - x[at]).max())), new
            for k in range(len(stops)):
                at = 3 * n + k
                rate, way = self.G[at] @ x + b[at], self.stops[k]  # type: ignore[index]
                new = laws[0].stops(self.G[at, at], rate, way, percussion.Stop(*stops[k]))
                worst, stops[k] = max(worst, abs(sum(new) - x[at])), new
                x[at] = stops[k].sum()
            if worst <= goal:
                break
        gamma, before = self.G @ x + b, self.rows @ self.before + lands
        lifted = [law.lands(*(Vec3(*y[3 * k : 3 * k + 3]) for y in (before, gamma, x))) for k, law in enumerate(laws)]
        flies = not any(lifted) and not (stops[:, 1] != 0).any()
        world = np.concatenate([vector(law.world(Vec3(*x[3 * k : 3 * k + 3]))) for k, law in enumerate(laws)])
        solver_report = np.array([worst, float(flies), sweeps])
        return Settled(world, None if held is None else stops, solver_report, self.back @ x)


def vector(v: Vec3) -> Array:
    return np.array([v.x, v.y, v.z], float)


def each(function: Any, *given: tuple[Array, int]) -> tuple[Array, ...]:
    """The results of a function of one world, for batches that broadcast; cores say how many axes one world has."""
    batch = np.broadcast_shapes(*(x.shape[: x.ndim - core] for x, core in given))
    flat = [
        np.broadcast_to(x, (*batch, *x.shape[x.ndim - core :])).reshape(-1, *x.shape[x.ndim - core :])
        for x, core in given
    ]
    found = [function(*(x[k] for x in flat)) for k in range(len(flat[0]))]
    return tuple(np.reshape(np.stack(r), (*batch, *np.shape(r[0]))) for r in zip(*found, strict=True))


def engine(evaluator: Evaluator, ground: Ground, stops: tuple[int, ...], balanced: bool) -> Engine:
    """The engine of a robot; balanced: whether free roots keep their momentum."""
    compiled = evaluator.backend == "compiled" and evaluator.tree.coupling is None
    return (Compiled if compiled else Reference)(evaluator, ground, stops, balanced)
