"""[BP]: the recursion of Balafoutis and Patel against Newton-Euler's, by the operations of the traced code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...algorithms.derivatives.partials import IDENTITY, Local, local, local_force
from ...algorithms.dynamics import balafoutis
from ...algorithms.scan import Array, Scan
from ...math.spatial import Force
from ...model.tree import Node, Tree
from .algorithms import RNEA, Algorithm, TracedAlgorithm, inverse
from .lab import CHAIN, Lab
from .plots import Bars
from .report import FAVOURED, Claim, ExperimentResult, Table, TableColumn, exactly

CHAINS = (6, 7, 9)  # numbers of joints, to see how many operations each joint adds
ROBOTS, QUICK_ROBOTS = ("arm", "quadruped", "humanoid36"), ("arm",)


def body_newton_euler(scan: Scan, q: Array, v: Array, a: Array) -> Sequence[Array]:
    """Newton-Euler in body coordinates, as in [RSS18] Alg. 1 and as arms are often programmed."""
    bodies = scan.outward(local(scan), scan.coordinates(q), scan.rates(v), scan.rates(a))
    forces = scan.each(lambda node, body: local_force(node, body, node.body.placed(IDENTITY), None), bodies)

    def inward(node: Node, f: Force, body: Local, a) -> tuple[Force, list]:
        return body.X.force(f), [s.dot(f) + arm * x for s, arm, x in zip(body.S, node.armature, a, strict=True)]

    return [scan.vector(scan.inward(inward, forces, bodies, scan.rates(a)))]


ARGUMENTS = ("q", "v", "a")
VALUES = {
    "Newton-Euler, ground coordinates": RNEA,
    "Newton-Euler, body coordinates": Algorithm("RNEA, body", ARGUMENTS, body_newton_euler),
    "Balafoutis-Patel": Algorithm(
        "Balafoutis-Patel", ARGUMENTS, lambda scan, *x: [balafoutis.inverse_dynamics(scan, *x)]
    ),
}
GROUND, BODY, TENSORS = VALUES
DERIVATIVES = {
    "IDSVA": inverse("idsva", 3),
    "chain rule on Newton-Euler": inverse("chain-rule", 3),
    "chain rule on Balafoutis-Patel": inverse("balafoutis-patel", 3),
}


COLUMNS = [
    TableColumn("robot"), TableColumn("recursion"), TableColumn("multiplications", "count"),
    TableColumn("additions", "count"), TableColumn("sines and cosines", "count"), TableColumn("instructions", "count"),
]  # fmt: skip

Counts = dict[tuple[str, str], int]  # instructions by robot and recursion


def operation_counts(lab: Lab) -> ExperimentResult:
    """Multiplications, additions and instructions of inverse dynamics and of its derivatives."""
    chains = [CHAIN.format(n) for n in CHAINS]
    robots = [*(QUICK_ROBOTS if lab.quick else ROBOTS), *chains]
    lab.plan(len(robots) * (len(VALUES) + len(DERIVATIVES)))
    values, value_rows = _count(lab, robots, VALUES)
    derivatives, derivative_rows = _count(lab, robots, DERIVATIVES)
    return ExperimentResult(
        [
            Table("Inverse dynamics, per state", COLUMNS, value_rows),
            Table("Its derivatives by q, v and a, per state", COLUMNS, derivative_rows),
        ],
        [_most_efficient(robots, chains, values), _linear(chains, values)],
        [
            Bars("inverse dynamics", robots, "instructions", _bars(robots, VALUES, values)),
            Bars("its derivatives", robots, "instructions", _bars(robots, DERIVATIVES, derivatives)),
        ],
        [
            "Counted in the traced graphs: constants folded, equal operations shared. A product that only one sum uses "
            "is fused with it into one instruction; a sine and cosine together count 34.",
            "[BP] gives no numbers to compare with; it claims the order. Its partials are those of the chain rule; "
            "IDSVA needs far fewer operations.",
        ],
    )


def _count(lab: Lab, robots: Sequence[str], recursions: dict[str, Algorithm]) -> tuple[Counts, list[list]]:
    """Instructions, and rows of a table that also counts kinds of operations."""
    counts: Counts = {}
    rows: list[list] = []
    for name in robots:
        for title, algorithm in recursions.items():
            lab.step(f"{title}, {name}")
            traced = TracedAlgorithm(algorithm, Tree(lab.robot(name).model))
            of = traced.operation_counts()
            counts[name, title] = traced.instructions
            additions, sines = of.get("add", 0) + of.get("sub", 0), of.get("sin", 0) + of.get("cos", 0)
            rows.append([name, title, of.get("mul", 0), additions, sines, traced.instructions])
    return counts, rows


def _most_efficient(robots: Sequence[str], chains: Sequence[str], counts: Counts) -> Claim:
    small, next_, _ = chains
    per_joint = {k: counts[next_, k] - counts[small, k] for k in VALUES}
    fewest = {name: min(VALUES, key=lambda k: counts[name, k]) for name in robots}
    smaller = all(counts[name, TENSORS] < counts[name, BODY] for name in robots)
    return Claim(
        "Balafoutis' and Patel's is the most efficient linear recursion known (in 2000)",
        FAVOURED,
        [min(counts[name, k] for k in VALUES if k != TENSORS) / counts[name, TENSORS] for name in robots],
        f"each joint of a chain: {per_joint[TENSORS]} instructions; Newton-Euler {per_joint[BODY]} in body "
        f"coordinates, {per_joint[GROUND]} in ground coordinates; the fewest on "
        + ", ".join(f"{name}: {k}" for name, k in fewest.items()),
        "it does need fewer than Newton-Euler in body coordinates" if smaller else "not even in body coordinates",
    )


def _linear(chains: Sequence[str], counts: Counts) -> Claim:
    small, next_, large = chains
    first = counts[next_, TENSORS] - counts[small, TENSORS]
    later = (counts[large, TENSORS] - counts[next_, TENSORS]) / (CHAINS[2] - CHAINS[1])
    return Claim(
        "It is linear in the number of joints",
        exactly(1.0),
        [later / first],
        f"per joint {first} instructions from {small} to {next_}, {later:g} from {next_} to {large}",
    )


def _bars(robots: Sequence[str], recursions: Iterable[str], counts: Counts) -> dict[str, list[float]]:
    return {k: [counts[name, k] for name in robots] for k in recursions}
