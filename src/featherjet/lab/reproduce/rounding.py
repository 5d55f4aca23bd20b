"""[RSS18] Fig. 3: derivatives that are zero, by finite differences and by analytical methods."""

from __future__ import annotations

import numpy as np

from ...algorithms.derivatives import methods, numeric
from ...algorithms.scan import Scan
from ...evaluate.reference import Reference, leading
from ...model.model import Array
from ...robot.robot import Robot
from ..bench.run import slope
from .lab import Lab, NotInstalled
from .plots import Lines, Matrix
from .report import Claim, Column, Outcome, Table, held

STEPS = tuple(10.0**-k for k in range(2, 11))
NUMERIC = ("finite-difference", "finite-difference-forward")
SKIPPED = ("auto", "lagrangian")  # the first is another one's name, the second takes long


def figure3(lab: Lab) -> Outcome:
    """A robot at rest without gravity: by v, inverse and forward dynamics do not change to first order."""
    name = "arm" if lab.quick else "hyq"
    remarks = []
    try:
        model = lab.robot(name).model
    except NotInstalled as missing:
        remarks.append(f"missing: {missing}; the built-in quadruped instead")
        model = lab.robot("quadruped").model
    robot = Robot(model, "numpy").with_gravity(np.zeros(3))
    q = robot.random_configuration(lab.seed)
    rest = np.zeros(robot.nv)
    names = [m for m in methods.methods() if m.quantity in (methods.ID, methods.FD) and m.name not in SKIPPED]
    lab.plan(len(names) + len(STEPS))
    rows: list[list] = []
    found: dict[tuple[str, str], Array] = {}
    for m in names:
        lab.step(f"{m.name}, {model.name}")
        by_v = np.asarray(getattr(robot, m.quantity)(q, rest, rest, method=m.name)[1])
        found[m.quantity, m.name] = by_v
        rows.append([_short(m.quantity), m.name, float(np.abs(by_v).max()), int((by_v != 0).sum()), by_v.size])
    compiled = Robot(robot.model, "compiled", 1)
    for quantity in (methods.ID, methods.FD):
        by_v = getattr(compiled, quantity)(q, rest, rest)[1]
        found[quantity, "compiled"] = by_v
        rows.append([_short(quantity), "compiled", float(np.abs(by_v).max()), int((by_v != 0).sum()), by_v.size])
    curves = _by_step(lab, robot, q, rest)
    exact = [row for row in rows if row[1] not in NUMERIC]
    forward = {k: y for k, y in curves.items() if "one-sided" in k}
    powers = {k: slope(np.array(STEPS[:6]), np.array(y[:6])) for k, y in forward.items()}
    one_sided = found[methods.FD, "finite-difference-forward"]
    claims = [
        Claim(
            "Finite differences are not uniformly zero",
            f"up to {max(r[2] for r in rows if r[1] == NUMERIC[1]):.0e}, "
            f"{sum(r[3] for r in rows if r[1] == NUMERIC[1])} entries other than zero (one-sided)",
            held(any(r[3] for r in rows if r[1] in NUMERIC)),
        ),
        Claim(
            "Analytical derivatives are",
            f"largest entry of {len(exact)} methods: {max(r[2] for r in exact):.0e}",
            held(all(r[3] == 0 for r in exact)),
        ),
        Claim(
            "What is left in finite differences is due to rounding",
            "it grows with the step, as h^"
            + " and h^".join(f"{p:.2f}" for p in powers.values())
            + "; central differences leave "
            + ", ".join(f"{max(y):.0e}" for k, y in curves.items() if "central" in k),
            held(not all(p > 0.9 for p in powers.values())),
            "tau(v) is quadratic in v: one-sided differences leave h C(q, e_k) e_k, which is truncation. Central "
            "differences cancel it, v and -v giving the same bits",
        ),
    ]  # fmt: skip
    top = max(float(np.abs(one_sided).max()), 1e-300)
    drawn = {k: _positive(y) for k, y in curves.items() if any(y)}
    return Outcome(
        [
            Table(
                f"{robot.name} at rest without gravity: derivatives by v, which are zero",
                [Column(""), Column("method"), Column("largest entry", "error"), Column("other than zero", "count"),
                 Column("of", "count")],
                rows,
            ),
            Table(
                "Largest entry by finite differences with step h",
                [Column("h", "error"), *(Column(k, "error") for k in curves)],
                [[h, *(y[i] for y in curves.values())] for i, h in enumerate(STEPS)],
            ),
        ],
        claims,
        [
            Matrix("dFD/dv, one-sided differences", one_sided, top * 1e-6, top),
            Matrix("dFD/dv, analytical: all white", found[methods.FD, "direct"], top * 1e-6, top),
            Lines("what is left of zero", "step h", "largest entry", drawn, marked=True),
        ],
        remarks,
    )  # fmt: skip


def _by_step(lab: Lab, robot: Robot, q: Array, rest: Array) -> dict[str, list[float]]:
    """The largest entry of the derivative by v, for each rule and step."""
    tree = Reference(robot.model).tree
    curves: dict[str, list[float]] = {}
    for h in STEPS:
        lab.step(f"step {h:.0e}")
        for rule, by in (("one-sided", numeric.one_sided(h)), ("central", numeric.central(h))):
            scan = Scan(tree)
            ID = numeric.inverse(by)(scan, q, rest, rest)[1]
            FD = numeric.forward(by)(scan, q, rest, rest)[0][1]
            for what, x in (("ID", ID), ("FD", FD)):
                curves.setdefault(f"{what}, {rule}", []).append(float(np.abs(leading(x, 0)).max()))
    return curves


def _positive(y: list[float]) -> tuple[list[float], list[float]]:
    points = [(h, x) for h, x in zip(STEPS, y, strict=True) if x > 0]
    return [h for h, _ in points], [x for _, x in points]


def _short(quantity: str) -> str:
    return "ID" if quantity == methods.ID else "FD"
