"""[BP]: the recursion of Balafoutis and Patel against Newton-Euler's, counted in our own graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...algorithms.derivatives import balafoutis
from ...algorithms.derivatives.partials import IDENTITY, Local, local, local_force
from ...algorithms.motion import upward
from ...algorithms.scan import Array, Scan
from ...math.spatial import Force
from ...model.tree import Node
from .lab import Lab
from .plots import Bars
from .report import Claim, Column, Outcome, Table, held
from .straight import RNEA, Traced, Way, inverse, kinds

CHAINS = (6, 7, 9)  # of so many joints, to tell how much each adds
ROBOTS, QUICK_ROBOTS = ("arm", "quadruped", "humanoid36"), ("arm",)


def body_newton_euler(scan: Scan, q: Array, v: Array, a: Array) -> Sequence[Array]:
    """Newton-Euler in body coordinates, as [RSS18] Alg. 1 has it and as arms are often programmed."""
    bodies = scan.outward(local(scan), scan.coordinates(q), scan.rates(v), scan.rates(a))
    forces = scan.each(lambda node, body: local_force(node, body, node.body.placed(IDENTITY), None), bodies)

    def inward(node: Node, f: Force, body: Local, a) -> tuple[Force, list]:
        return body.X.force(f), [s.dot(f) + arm * x for s, arm, x in zip(body.S, node.armature, a, strict=True)]

    return [scan.vector(scan.inward(inward, forces, bodies, scan.rates(a)))]


def tensor_recursion(scan: Scan, q: Array, v: Array, a: Array) -> Sequence[Array]:
    """[BP]'s recursion for torques alone: what belongs to its partials is dead code, and goes."""

    def outward(node: Node, parent: balafoutis.SpinningBody | None, q, v, a) -> balafoutis.SpinningBody:
        ground = upward(node, q, scan.tree.gravity).lin if parent is None else balafoutis.NONE
        return balafoutis.moved(node, parent, ground, q, v, a)

    def inward(node: Node, total: balafoutis.Load, body: balafoutis.SpinningBody, a) -> tuple[balafoutis.Load, list]:
        tau = [s.dot(total.f) + arm * x for s, arm, x in zip(body.S, node.armature, a, strict=True)]
        return balafoutis.inward(node, total, body)[0], tau

    bodies = scan.outward(outward, scan.coordinates(q), scan.rates(v), scan.rates(a))
    loads = scan.each(balafoutis.load, bodies, scan.constant(None))
    return [scan.vector(scan.inward(inward, loads, bodies, scan.rates(a)))]


ARGUMENTS = ("q", "v", "a")
VALUES = {
    "Newton-Euler, ground coordinates": RNEA,
    "Newton-Euler, body coordinates": Way("RNEA, body", ARGUMENTS, body_newton_euler),
    "Balafoutis-Patel": Way("Balafoutis-Patel", ARGUMENTS, tensor_recursion),
}
GROUND, BODY, TENSORS = VALUES
DERIVATIVES = {
    "IDSVA": inverse("idsva", 3),
    "chain rule on Newton-Euler": inverse("chain-rule", 3),
    "chain rule on Balafoutis-Patel": inverse("balafoutis-patel", 3),
}


def operation_counts(lab: Lab) -> Outcome:
    """Multiplications, additions and instructions of inverse dynamics and of its derivatives."""
    small, next_, large = (f"chain{n}" for n in CHAINS)
    robots = [*(QUICK_ROBOTS if lab.quick else ROBOTS), small, next_, large]
    lab.plan(len(robots) * (len(VALUES) + len(DERIVATIVES)))
    values, value_rows = _counted(lab, robots, VALUES)
    derivatives, derivative_rows = _counted(lab, robots, DERIVATIVES)
    per_joint = {k: values[next_, k] - values[small, k] for k in VALUES}
    later = (values[large, TENSORS] - values[next_, TENSORS]) / (CHAINS[2] - CHAINS[1])
    fewest = {name: min(VALUES, key=lambda k: values[name, k]) for name in robots}
    best = all(k == TENSORS for k in fewest.values())
    smaller = all(values[name, TENSORS] < values[name, BODY] for name in robots)
    claims = [
        Claim(
            "Balafoutis' and Patel's is the most efficient linear recursion known (in 2000)",
            f"each joint of a chain: {per_joint[TENSORS]} instructions; Newton-Euler {per_joint[BODY]} in body "
            f"coordinates, {per_joint[GROUND]} in ground coordinates; the fewest on "
            + ", ".join(f"{name}: {k}" for name, k in fewest.items()),
            held(best),
            "in body coordinates it does need less" if smaller else "not even in body coordinates",
        ),
        Claim(
            "It is linear in the number of joints",
            f"per joint {per_joint[TENSORS]} instructions from {small} to {next_}, {later:g} from {next_} to {large}",
            held(later == per_joint[TENSORS]),
        ),
    ]
    heads = [Column("robot"), Column("recursion"), Column("multiplications", "count"), Column("additions", "count"),
             Column("sines and cosines", "count"), Column("instructions", "count")]  # fmt: skip
    return Outcome(
        [
            Table("Inverse dynamics, per state", heads, value_rows),
            Table("Its derivatives by q, v and a, per state", heads, derivative_rows),
        ],
        claims,
        [
            Bars("inverse dynamics", robots, "instructions", _bars(robots, VALUES, values)),
            Bars("its derivatives", robots, "instructions", _bars(robots, DERIVATIVES, derivatives)),
        ],
        [
            "Counted in the traced graphs: constants folded, equal operations shared. Instructions: a product that "
            "goes into one sum is fused with it; a sine and cosine together count 34.",
            "[BP] has no numbers to compare with; what it claims is the order. Its partials are those of the chain "
            "rule; IDSVA needs far fewer operations.",
        ],
    )


def _bars(robots: Sequence[str], ways: Iterable[str], counts: dict[tuple[str, str], int]) -> dict[str, list[float]]:
    return {k: [counts[name, k] for name in robots] for k in ways}


def _counted(lab: Lab, robots: Sequence[str], ways: dict[str, Way]) -> tuple[dict[tuple[str, str], int], list[list]]:
    counts, rows = {}, []
    for name in robots:
        for title, way in ways.items():
            lab.step(f"{title}, {name}")
            traced = Traced(way, lab.robot(name)._reference.tree)
            of = kinds(traced)
            counts[name, title] = traced.operations
            sums = of.get("add", 0) + of.get("sub", 0)
            rows.append([name, title, of.get("mul", 0), sums, of.get("sin", 0) + of.get("cos", 0), traced.operations])
    return counts, rows
