"""A user's own velocities u: v = B(q) u with any invertible B, [KINDR] 'Transformation of Equations of Motion'.

B is a function of scalars. It is traced once; automatic differentiation gives its derivative by q, and that of the
acceleration c = dB/dt u. These are quantities like others, compiled or not, and the rules of conventions/rules.py do
the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..algorithms.quantities import Input, Quantity, Result
from ..algorithms.record import Q
from ..algorithms.scan import Array, Scan
from ..conventions.coordinates import VelocityBlock, VelocityMap
from ..errors import InputError
from ..jit.autodiff import Tape, dependence, jacobian
from ..jit.graph import Expr, Graph, TooLong
from ..jit.straight import loads
from ..model.configuration import Space
from ..model.manifolds import side_by_side
from ..model.parts import Part

OWN = "own velocities"
LONGEST = 100_000  # most operations of B and its derivatives
SINGULAR = 1e12  # condition of B from which on u is not determined
U = Input("u", ("v",), "v")
Function = Callable[[Any], Any]
Run = Callable[[Quantity, Mapping[str, Array]], tuple[Array, ...]]


@dataclass(frozen=True, eq=False)
class PlayedQuantity(Quantity):
    """A quantity whose results are expressions traced before."""

    tape: Tape | None = None

    def compute(self, scan: Scan, given: Mapping[str, Any], method: str | None = None, **options: Any) -> list[Array]:
        assert self.tape is not None
        played = iter(self.tape.play({(name, k): x for name, entries in given.items() for k, x in enumerate(entries)}))
        shapes = self.result_shapes({})
        return [scan.vector([[next(played) for _ in range(prod(s))]]).reshape(*s, *scan.lanes) for s in shapes]


def played(name: str, inputs: tuple[Input, ...], results: Mapping[str, Array]) -> PlayedQuantity:
    """The quantity of these expressions."""
    entries = [x for r in results.values() for x in r.flat]
    text = entries[0].graph.text(x.index for x in entries) + str([x.index for x in entries])
    return PlayedQuantity(
        name=f"{name} {hashlib.sha256(text.encode()).hexdigest()[:16]}",
        summary=name,
        inputs=inputs,
        results=tuple(Result(key, r.shape) for key, r in results.items()),
        algorithm=name.strip,  # never called: `compute` plays the tape
        of_space=True,
        tape=Tape(entries),
    )


class OwnVelocities:
    """The velocities u of v = B(q) u, for a robot whose q and v are those of `space`; `run` computes its quantities."""

    convention = OWN

    def __init__(self, space: Space, function: Function, run: Run) -> None:
        self.space, self.function, self._run = space, function, run
        self.nq, self.nv, self.parts = space.nq, space.nv, space.parts
        graph = Graph(LONGEST)
        q, u = loads(graph, "q", (self.nq,)), loads(graph, "u", (self.nv,))
        try:
            B = traced(graph, function, q, self.nv)
            self.block = hull(B, q, self.parts)
            self._quantities = self._traced(B, q, u) if self.block.stop else None
        except TooLong as e:
            raise InputError(f"with_velocities: B and its derivatives take {e}; simplify it") from e

    def _traced(self, B: Array, q: Array, u: Array) -> tuple[PlayedQuantity, PlayedQuantity]:
        """B (k, k), F (m, k) of dq/dt = F v, and dB/dq (k, k, m); dc/dq (k, m) at constant u; all of the block."""
        parts = [part for part in self.parts if overlap(part.v, self.block)]
        m, dofs = slice(parts[0].q.start, parts[-1].q.stop), slice(parts[0].v.start, parts[-1].v.stop)
        own, x, u_k, lift = B[self.block, self.block], q[m], u[self.block], q[0].graph.lift
        F = np.array(side_by_side(*(part.manifold.rate_map(q[part.q]) for part in parts)), object)
        F = F[:, self.block.start - dofs.start : self.block.stop - dofs.start]
        dB = jacobian(list(own.flat), list(x)).reshape(*own.shape, len(x))
        v = own @ u_k
        c = jacobian(list(v), list(x), "forward", (F @ v)[:, None])[:, 0]
        maps = {"B": own, "F": np.vectorize(lift, otypes=[object])(F), "dB": dB}
        bends = {"dc": jacobian(list(c), list(x))}
        return played("B of with_velocities", (Q,), maps), played("bend of B", (Q, U), bends)

    def joint_limits(self) -> list[tuple[Array, Array, Array, Array]]:
        found = self.space.joint_limits()
        for part, (_, _, velocity, effort) in zip(self.parts, found, strict=True):
            if overlap(part.v, self.block) and np.isfinite([velocity, effort]).any():
                raise InputError(
                    f"joint {part.joint.name!r}: its velocity and effort limits cannot be expressed in own velocities; "
                    "see robot.with_convention('pinocchio').limits()"
                )
        return found

    def to_standard(self, given: Mapping[str, Array]) -> tuple[dict[str, Array], VelocityMap]:
        """v, a (only with v) and tau, if given, as those of `space`, other inputs as they are; and B."""
        B = self.velocity_map(given["q"] if "q" in given else given["q0"])
        return dict(given) | B.state_to_standard(given), B

    def from_standard(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """The inverse of `to_standard`."""
        if set(given) == {"q"}:
            return dict(given)
        return dict(given) | self.velocity_map(given["q"]).state_from_standard(given)

    def positions_to_standard(self, positions: Any) -> Any:
        raise InputError("lock: B of with_velocities knows all joints; lock the robot first, then give it velocities")

    def velocity_map(self, q: Array) -> VelocityMap:
        if self._quantities is None:
            return VelocityMap([])
        maps, bends = self._quantities

        def bend(u: Array) -> Array:
            padded = np.zeros((*u.shape[:-1], self.nv), u.dtype)
            padded[..., self.block] = u
            return self._run(bends, {"q": q, "u": padded})[0]

        B, F, dB = self._run(maps, {"q": q})
        inverse = inverted(B)
        gamma = np.swapaxes(dB @ F[..., None, :, :], -1, -2) @ inverse[..., None, :, :]
        return VelocityMap([OwnBlock(self.block, self.block, B, inverse, np.swapaxes(gamma, -1, -2), F, bend)])


@dataclass(frozen=True, eq=False)
class OwnBlock(VelocityBlock):
    """A block of a B whose Gamma depends on q."""

    F: Array  # of dq/dt = F v, (..., m, k)
    dc: Callable[[Array], Array]  # dc/dq (..., k, m) at the block's u (..., k)

    def bend(self, v: Array) -> Array:
        return self.dc((self.inverse @ v[..., self.v, None])[..., 0]) @ self.F


def overlap(a: slice, b: slice) -> bool:
    return a.start < b.stop and b.start < a.stop


def traced(graph: Graph, function: Function, q: Array, n: int) -> Array:
    """B (n, n) as expressions of q."""
    if not callable(function):
        raise InputError(f"with_velocities: expected a function B(q), got {type(function).__name__}")
    try:
        B = np.asarray(function(q.copy()), object)
        entries = [graph.lift(x) for x in B.flat]
    except (TypeError, ValueError, AttributeError) as e:
        raise InputError(
            f"with_velocities: cannot trace B: {e}. Compute it from the entries of q with + - * / and the functions "
            "sincos, sqrt and where_less of featherjet.math.scalars"
        ) from e
    if B.shape != (n, n):
        raise InputError(f"with_velocities: B(q) must have the shape (nv, nv) = ({n}, {n}); got {B.shape}")
    out = np.empty(n * n, object)
    out[:] = entries
    return out.reshape(n, n)


def hull(B: Any, q: Array, parts: Sequence[Part]) -> slice:
    """The degrees of freedom, from the first to the last, that B changes or depends on."""
    touched = set()
    for i, j in np.ndindex(*B.shape):
        if B[i, j].value != float(i == j):
            touched |= {i, j}
    bits = depends(list(B.flat), list(q))
    for part in parts:
        if any(bits >> k & 1 for k in range(part.q.start, part.q.stop)):
            touched |= set(range(part.v.start, part.v.stop))
    return slice(min(touched), max(touched) + 1) if touched else slice(0, 0)


def depends(outputs: Sequence[Expr], inputs: Sequence[Expr]) -> int:
    """The inputs, as bits, that any of the outputs depends on."""
    found = dependence(outputs[0].graph, [x.index for x in outputs], {x.index: 1 << k for k, x in enumerate(inputs)})
    bits = 0
    for x in outputs:
        bits |= found[x.index]
    return bits


def inverted(B: Array) -> Array:
    """B^-1; raises if B is singular."""
    with np.errstate(all="ignore"):
        try:
            inverse = np.linalg.inv(B)
        except np.linalg.LinAlgError:
            inverse = np.full_like(B, np.inf)
            for at in np.ndindex(B.shape[:-2]):
                if np.linalg.matrix_rank(B[at]) == len(B[at]):
                    inverse[at] = np.linalg.inv(B[at])
        condition = np.linalg.norm(B, axis=(-2, -1)) * np.linalg.norm(inverse, axis=(-2, -1))
    bad = ~(condition < SINGULAR)
    if bad.any():
        where = tuple(map(int, np.argwhere(bad)[0]))
        raise InputError(
            f"with_velocities: B(q) is singular{f' at sample {where}' if where else ''}: these velocities do not "
            "describe every motion there, as rates of Euler angles at gimbal lock; choose others near it"
        )
    return inverse
