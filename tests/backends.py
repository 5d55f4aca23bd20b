"""Both backends side by side: how compiled code is held to the plain reference.

Rolled code is the same for all robots with the same variants of joints. To compile little, robots are marked to take
the code of all variants (`shared=True`), whichever they have.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from functools import cache, partial
from typing import NamedTuple

import numpy as np

import featherjet as fj
from featherjet.algorithms.quantities import FRAME, QUANTITIES, SECOND_ORDER
from featherjet.jit.engine import target
from featherjet.jit.kernel import Kernel
from featherjet.model.joints import KINDS
from featherjet.model.lock import lock
from featherjet.treejit import compiler, tables
from featherjet.treejit.program import Variant
from helpers import State

TOLERANCE = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 2e-5}
EVERY_VARIANT = tuple(sorted(Variant(k.name, r, k.nq, k.nv) for k in KINDS.values() for r in (False, True)))
SECOND = [  # test_compiled_second_order.py has these
    x.name
    for x in SECOND_ORDER
    if not (x.inside or (x.product and x.product.under_forces)) and all(len(r.axes) < 3 for r in x.results)
]
BLOCKS = ("torque_regressor", "inverse_dynamics_force_derivatives")
SUMMED = (*BLOCKS, "static_torque", "static_torque_derivatives", "centroidal_derivatives")  # test_blocks.py has these
FRAMED = [x.name for x in QUANTITIES.values() if FRAME in x.inputs]  # test_frames.py has these
CALLS = [
    x.name
    for x in QUANTITIES.values()
    if x.cost is not None and hasattr(fj.Robot, x.name) and x not in SECOND_ORDER and x.name not in (*SUMMED, *FRAMED)
]
ROLLED = [name for name in CALLS if QUANTITIES[name].rolled]
SINGULAR = [name for name in CALLS if QUANTITIES[name].margins]
MATRICES = [name for name in CALLS if QUANTITIES[name].matrices]
own_variants = tables.variants


def variants(tree) -> tuple[Variant, ...]:
    return EVERY_VARIANT if getattr(tree, "shared", False) else own_variants(tree)


compiler.variants = tables.variants = variants


def kernel_of(robot: fj.Robot, name: str, fext: bool = False) -> Kernel:
    """The compiled code of a quantity."""
    record = QUANTITIES[name]
    found = robot.evaluator.kernel(record, [*(i.name for i in record.inputs), *(["fext"] if fext else [])])
    assert found is not None
    return found


class Pair(NamedTuple):
    """One robot on both backends; `fext`: whether tests give it external forces (which is other code)."""

    compiled: fj.Robot
    reference: fj.Robot
    fext: bool = True


def both(model: fj.Model, unroll: bool = False, shared: bool = True, fext: bool = True) -> Pair:
    compiled = fj.Robot(model, backend="compiled", threads=1, unroll=unroll)
    compiled.evaluator.tree.shared = shared and not unroll  # type: ignore[attr-defined]
    return Pair(compiled, fj.Robot(model, backend="numpy"), fext)


def small_quadruped(joints: Sequence[str] = ("HAA",)) -> fj.Model:
    """A floating base with four legs of two joints, or of one."""
    return lock(fj.models.quadruped(), {f"{leg}_{j}": 0.1 for leg in ("LF", "LH", "RF", "RH") for j in joints})


def branching(joints: int) -> fj.Model:
    """A free base with branches of turning joints, one of them beyond another free joint, and a second root."""
    b = fj.ModelBuilder("branches")
    rng = np.random.default_rng(joints)
    for i in range(joints):
        kind = "free" if i in (0, 4) else "revolute"
        parent = None if i in (0, joints - 1) else f"j{max(0, i - 1 - i % 3)}"
        axis = rng.normal(size=3)
        b.add_joint(f"j{i}", kind, parent, axis=axis / np.linalg.norm(axis), armature=0.1)
        b.add_body(f"j{i}", 1.0 + i, rng.normal(size=3) / 4, np.diag([0.3, 0.4, 0.5]))
    return b.build()


ROBOTS = {
    "arm": fj.models.arm,
    "every kind": lambda: fj.models.random_tree(8, seed=6),  # two roots, branches, a free joint in the middle
    "quadruped": lambda: small_quadruped(("HAA", "KFE")),
}
PAIRS = [(name, unroll) for name in ROBOTS for unroll in (False, True)]
IDS = [f"{name}, {'unrolled' if unroll else 'rolled'}" for name, unroll in PAIRS]


def pair_of(name: str, unroll: bool) -> Pair:
    """The robots that most is tested on, each compiled once for all test files, for the target of the moment."""
    return _pair_for(target().name, name, unroll)


@cache
def _pair_for(target: str, name: str, unroll: bool) -> Pair:
    return both(ROBOTS[name](), unroll, shared=name == "every kind", fext=name == "every kind")


# How they are compared


def arguments(name: str, s: State, fext: bool = False) -> list[np.ndarray]:
    given = {"q": s.q, "v": s.v, "a": s.a, "tau": s.a, "w": s.a, "dq": s.v, "dv": s.a, "da": s.v, "dtau": s.v}
    record = QUANTITIES[name]
    return [*(given[i.name] for i in record.inputs), *([s.fext] if fext and record.forces else [])]


def results(robot: fj.Robot, name: str, *args: object, **more) -> tuple[np.ndarray, ...]:
    record = QUANTITIES[name]
    if record.product is not None:
        call = partial(getattr(robot, record.product.kind), record.product.of)
        args, forces = args[: len(record.inputs)], args[len(record.inputs) :]
        found = call(*args, fext=forces[0] if forces else None, **more)
    else:
        found = getattr(robot, name)(*args, **more)
    return tuple(found) if isinstance(found, tuple) else (found,)


def largest(x: np.ndarray) -> np.ndarray:
    """The largest entry of each sample."""
    return np.abs(x).max(axis=tuple(range(1, x.ndim)), initial=0.0)


def scales(reference: fj.Robot, s: State) -> dict[str, list[np.ndarray]]:
    """What each result is made of, for each sample: rounding is relative to this, also where terms cancel.

    M^-1 alone is, in either backend, as good as M is conditioned.
    """
    M, Minv, b = reference.mass_matrix(s.q), reference.inverse_mass_matrix(s.q), reference.bias(s.q, s.v)
    d = reference.inverse_dynamics_derivatives(s.q, s.v, s.a, s.fext)
    a = reference.forward_dynamics(s.q, s.v, s.a, s.fext)
    M, Minv, b = largest(M), largest(Minv), largest(b) + largest(M) * largest(s.v) ** 2
    tau = b + M * largest(s.a) + largest(reference.inverse_dynamics(s.q, s.v, s.a, s.fext))
    by_q, by_v = largest(d.dtau_dq) + tau, largest(d.dtau_dv) + M * largest(s.v)
    w, along = np.abs(s.a).sum(1), np.abs(s.v).sum(1)  # as `arguments` gives them
    reached = [w * by_q, w * by_v, w * M]
    of_a = [Minv * x for x in (by_q + M * largest(a), by_v)]
    hessian = reference.inverse_dynamics_hessian(s.q, s.v, s.a, s.a, s.fext)
    inverse = Minv * (1 + M * Minv / 10)
    l = w * Minv
    second = l * (by_q + 2 * M * of_a[0]), l * (by_v + M * of_a[1]), l * M, l * M * inverse
    reach = largest(reference.forward_kinematics(s.q))
    momentum = largest(reference.centroidal_map(s.q)) * (1 + reach)
    return {
        "inverse_dynamics": [tau],
        "bias": [b],
        "gravity": [largest(reference.gravity(s.q))],
        "mass_matrix": [M],
        "coriolis_matrix": [by_v],
        "inverse_mass_matrix": [inverse],
        "forward_kinematics": [reach],
        "forward_dynamics": [Minv * tau],
        "inverse_dynamics_derivatives": [by_q, by_v, M],
        "forward_dynamics_derivatives": [*of_a, inverse],
        "inverse_dynamics_vjp": [*reached, w * reach],
        "inverse_dynamics_jvp": [along * (by_q + M) + w * by_v],
        "forward_dynamics_vjp": [*(w * x for x in of_a), w * inverse, w * inverse * reach],
        "forward_dynamics_jvp": [along * (of_a[0] + inverse) + w * of_a[1]],
        "inverse_dynamics_hessian": [largest(x) + y for x, y in zip(hessian, (*reached[:1], *reached), strict=True)],
        "forward_dynamics_hessian": [*second],
        "forward_dynamics_second_order": [*second, *of_a, inverse],
        "kinetic_energy": [M * largest(s.v) ** 2],
        "potential_energy": [reference.mass * np.linalg.norm(reference.model.gravity) * reach],
        "center_of_mass": [reach],
        "centroidal_map": [momentum],
        "centroidal_momentum": [momentum * largest(s.v)],
    }


def compare(
    pair: Pair, s: State, names: Sequence[str] = CALLS, each: bool = False, dtype: type[np.floating] = np.float64
) -> float:
    """Kernels on both backends, in one call or `each` state by itself; returns the worst error.

    Code of any precision is held to the reference, which computes in double, at the same inputs.
    """
    s = State(*(x.astype(dtype).astype(float) for x in s))
    size, worst = scales(pair.reference, s), 0.0
    for name in names:
        args = arguments(name, s, pair.fext)
        expected = results(pair.reference, name, *args)
        args = [x.astype(dtype) for x in args]
        if each:
            singles = [results(pair.compiled, name, *(x[k] for x in args)) for k in range(len(s.q))]
            got = tuple(np.stack(r) for r in zip(*singles, strict=True))
        else:
            got = results(pair.compiled, name, *args)
        for k, (x, y) in enumerate(zip(got, expected, strict=True)):
            assert x.shape == y.shape
            assert x.dtype == dtype
            assert np.isfinite(x).all(), f"{name} {k}: not finite"
            off = largest(x - y)
            if not off.size:
                continue
            error = float(np.max(np.divide(off, size[name][k], where=off > 0, out=np.zeros_like(off))))
            assert error <= TOLERANCE[x.dtype], f"{name} {k}: off by {error:.2e}"
            worst = max(worst, error)
    return worst


# Structural zeros


def branches(robot: fj.Robot) -> tuple[np.ndarray, np.ndarray]:
    """Which dofs lie on a common path to a root, and which belong to one tree: (nv, nv) each."""
    joints = robot.model.joints
    above = np.eye(len(joints), dtype=bool)
    for i, joint in enumerate(joints):
        if joint.parent >= 0:
            above[i] |= above[joint.parent]
    kin = (above.astype(int) @ above.T) > 0
    of = np.repeat(np.arange(len(joints)), [j.nv for j in joints])
    return (above | above.T)[np.ix_(of, of)], kin[np.ix_(of, of)]


def zeros_where_they_belong(robot: fj.Robot, s: State, fext: bool = True) -> None:
    path, kin = branches(robot)
    for name in MATRICES:
        pattern = kin if QUANTITIES[name].margins else path
        for x in results(robot, name, *arguments(name, s, fext)):
            assert not x[:, ~pattern].any(), f"{name}: a zero of the tree is not exactly zero"
            assert x[:, pattern].any()


# Mistakes and threads


def spoiled(x: np.ndarray, at: tuple[int, ...], value: float) -> np.ndarray:
    x = x.copy()
    x[at] = value
    return x


def in_threads(*works, rounds: int) -> None:
    """Run functions at the same time, many times each; the first failure is raised here."""
    failures: list[BaseException] = []
    ready = threading.Barrier(len(works))

    def go(work) -> None:
        try:
            ready.wait()
            for _ in range(rounds):
                if failures:
                    return
                work()
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=go, args=(work,)) for work in works]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    if failures:
        raise failures[0]
