"""[RSS18] Fig. 3: derivatives that are zero, by finite differences and by analytical methods."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...algorithms.derivatives import methods, numeric
from ...algorithms.scan import Scan
from ...model.model import Array
from ...model.tree import Tree
from ...robot.robot import Robot
from ..bench.run import slope
from .lab import Lab, NotInstalled
from .plots import LinePanel, MatrixPanel, Panel
from .report import Claim, ExperimentResult, Figure, Table, TableColumn, exactly

STEPS = tuple(10.0**-k for k in range(2, 11))
ONE_SIDED, CENTRAL = "one-sided", "central"
RULES = {ONE_SIDED: numeric.one_sided, CENTRAL: numeric.central}
FORWARD_DIFFERENCE = "finite-difference-forward"
NUMERIC = ("finite-difference", FORWARD_DIFFERENCE)
LABELS = {methods.ID: "ID", methods.FD: "FD"}
SKIPPED = ("auto", "lagrangian")  # the first is another method's name, the second takes long


class Zero(NamedTuple):
    """A derivative by v (n, n) that should be zero, by one method."""

    quantity: str
    method: str
    by_v: Array

    @property
    def largest(self) -> float:
        return float(np.abs(self.by_v).max())

    @property
    def nonzeros(self) -> int:
        return int((self.by_v != 0).sum())


Remainders = dict[tuple[str, str], list[float]]  # by label and rule: the largest entry for each of STEPS


def figure3(lab: Lab) -> ExperimentResult:
    """A robot at rest without gravity: to first order, velocity changes neither torques nor accelerations."""
    robot, remarks = _robot(lab)
    q = robot.random_configuration(lab.seed)
    analysed = [m for m in methods.methods() if m.quantity in LABELS and m.name not in SKIPPED]
    lab.plan(len(analysed) + len(STEPS))
    zeros = _zeros(lab, robot, q, analysed)
    remainders = _by_step(lab, robot, q)
    return ExperimentResult(
        [_zero_table(robot, zeros), _step_table(remainders)],
        [_not_zero(zeros), _exactly_zero(zeros), _due_to_rounding(remainders)],
        _panels(zeros, remainders),
        remarks,
    )


def _robot(lab: Lab) -> tuple[Robot, list[str]]:
    """The robot of the figure, without gravity, and a remark if another stands in for it."""
    remarks = []
    try:
        model = lab.robot("arm" if lab.quick else "hyq").model
    except NotInstalled as missing:
        remarks.append(f"missing: {missing}; the built-in quadruped instead")
        model = lab.robot("quadruped").model
    return Robot(model, backend="numpy").with_gravity(np.zeros(3)), remarks


def _zeros(lab: Lab, robot: Robot, q: Array, analysed: list[methods.Method]) -> list[Zero]:
    """The derivative by v of every method, and of compiled code."""
    rest = np.zeros(robot.nv)
    zeros = []
    for m in analysed:
        lab.step(f"{m.name}, {robot.name}")
        derivatives = getattr(robot, m.quantity)(q, rest, rest, method=m.name)
        zeros.append(Zero(m.quantity, m.name, np.asarray(derivatives[1])))
    compiled = Robot(robot.model, backend="compiled", threads=1)
    return zeros + [Zero(k, "compiled", getattr(compiled, k)(q, rest, rest)[1]) for k in LABELS]


def _by_step(lab: Lab, robot: Robot, q: Array) -> Remainders:
    """The largest entry of the derivative by v, for each rule and step."""
    rest, tree = np.zeros(robot.nv), Tree(robot.model)
    remainders: Remainders = {}
    for h in STEPS:
        lab.step(f"step {h:.0e}")
        for rule, make in RULES.items():
            ID = numeric.inverse(make(h))(Scan(tree), q, rest, rest)[1]
            FD = numeric.forward(make(h))(Scan(tree), q, rest, rest)[0][1]
            for label, x in (("ID", ID), ("FD", FD)):
                remainders.setdefault((label, rule), []).append(float(np.abs(np.asarray(x)).max()))
    return remainders


def _zero_table(robot: Robot, zeros: list[Zero]) -> Table:
    return Table(
        f"{robot.name} at rest without gravity: derivatives by v, which are zero",
        [TableColumn(""), TableColumn("method"), TableColumn("largest entry", "error"),
         TableColumn("other than zero", "count"), TableColumn("of", "count")],
        [[LABELS[z.quantity], z.method, z.largest, z.nonzeros, z.by_v.size] for z in zeros],
    )  # fmt: skip


def _step_table(remainders: Remainders) -> Table:
    return Table(
        "Largest entry by finite differences with step h",
        [TableColumn("h", "error"), *(TableColumn(", ".join(k), "error") for k in remainders)],
        [[h, *(y[i] for y in remainders.values())] for i, h in enumerate(STEPS)],
    )


def _not_zero(zeros: list[Zero]) -> Claim:
    one_sided = [z for z in zeros if z.method == FORWARD_DIFFERENCE]
    return Claim(
        "Finite differences are not uniformly zero",
        Figure(1),
        [z.nonzeros for z in one_sided],
        f"up to {max(z.largest for z in one_sided):.0e}, {sum(z.nonzeros for z in one_sided)} entries other than zero "
        "(one-sided)",
    )


def _exactly_zero(zeros: list[Zero]) -> Claim:
    exact = [z for z in zeros if z.method not in NUMERIC]
    return Claim(
        "Analytical derivatives are",
        exactly(0),
        [z.nonzeros for z in exact],
        f"largest entry of {len(exact)} methods: {max(z.largest for z in exact):.0e}",
    )


def _due_to_rounding(remainders: Remainders) -> Claim:
    powers = [slope(np.array(STEPS[:6]), np.array(y[:6])) for (_, rule), y in remainders.items() if rule == ONE_SIDED]
    central = ", ".join(f"{max(y):.0e}" for (_, rule), y in remainders.items() if rule == CENTRAL)
    growth = [y[0] / y[5] for (_, rule), y in remainders.items() if rule == ONE_SIDED]
    return Claim(
        "What is left in finite differences is due to rounding, which falls as the step grows",
        Figure(0.0, 1.0),
        growth,
        f"it grows with the step, as {' and '.join(f'h^{p:.2f}' for p in powers)}; central differences leave {central}",
        "tau(v) is quadratic in v: one-sided differences leave h C(q, e_k) e_k, which is truncation. Central "
        "differences cancel it, since v and -v give the same bits",
    )


def _panels(zeros: list[Zero], remainders: Remainders) -> list[Panel]:
    by_v = {z.method: z.by_v for z in zeros if z.quantity == methods.FD}
    one_sided = by_v[FORWARD_DIFFERENCE]
    top = max(float(np.abs(one_sided).max()), 1e-300)
    curves = {", ".join(k): _positive(y) for k, y in remainders.items() if any(y)}
    return [
        MatrixPanel("dFD/dv, one-sided differences", one_sided, top * 1e-6, top),
        MatrixPanel("dFD/dv, analytical: all white", by_v["direct"], top * 1e-6, top),
        LinePanel("what is left of zero", "step h", "largest entry", curves, marked=True),
    ]


def _positive(y: list[float]) -> tuple[list[float], list[float]]:
    """The points that a logarithmic axis can show."""
    points = [(h, x) for h, x in zip(STEPS, y, strict=True) if x > 0]
    return [h for h, _ in points], [x for _, x in points]
