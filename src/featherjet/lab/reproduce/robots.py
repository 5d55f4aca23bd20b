"""[IDSVA] Fig. 5: IDSVA against Pinocchio's algorithm of that time on real robots."""

from __future__ import annotations

from typing import NamedTuple

from .algorithms import inverse
from .lab import Lab, Measurements, NotInstalled, count_ratio, ratio
from .plots import Bars
from .report import FAVOURED, Cell, Claim, ExperimentResult, Figure, Table, TableColumn, counted, span

ROBOTS = {
    "UR3": "ur3",
    "Baxter": "baxter",
    "HyQ": "hyq",
    "Atlas": "atlas",
    "Talos": "talos_full",
}
QUICK_ROBOTS = {"UR3": "ur3", "arm": "arm"}
METHODS = ("idsva", "pinocchio", "idsva-body")
TALOS = 1.4, 1.2  # the paper's speedups, with gcc and with clang
NAN = float("nan")


class RobotRow(NamedTuple):
    """One robot of the figure; ratios are pinocchio / idsva, and body / ground coordinates."""

    title: str
    nv: int
    found: Measurements

    @property
    def time(self) -> float | None:
        return ratio(self.found["pinocchio"], self.found["idsva"])

    @property
    def operations(self) -> float | None:
        return count_ratio(self.found["pinocchio"], self.found["idsva"])

    @property
    def paper(self) -> float | None:
        return TALOS[0] if self.title == "Talos" else None

    @property
    def cells(self) -> list[Cell]:
        ground, pinocchio, body = (self.found[k] for k in METHODS)
        return [
            self.title, self.nv, ground.seconds, pinocchio.seconds, self.time,
            ground.operations, pinocchio.operations, self.operations,
            self.paper, ratio(body, ground), count_ratio(body, ground),
        ]  # fmt: skip


COLUMNS = [
    TableColumn("robot"), TableColumn("n", "count"), TableColumn("idsva", "time"), TableColumn("pinocchio", "time"),
    TableColumn("ratio", "ratio"), TableColumn("idsva", "count"), TableColumn("pinocchio", "count"),
    TableColumn("ratio", "ratio"), TableColumn("paper, gcc", "ratio"), TableColumn("body / ground: time", "ratio"),
    TableColumn("operations", "ratio"),
]  # fmt: skip


def figure5(lab: Lab) -> ExperimentResult:
    """Derivatives of inverse dynamics of UR3, Baxter, HyQ, Atlas and Talos."""
    rows, missing = _race(lab)
    groups = [f"{row.title}\nn = {row.nv}" for row in rows]
    seconds = {k: [1e6 * (row.found[k].seconds or NAN) for row in rows] for k in ("idsva", "pinocchio")}
    speedups = {
        "time": [row.time or NAN for row in rows],
        "operations": [row.operations or NAN for row in rows],
        "paper, gcc": [row.paper or NAN for row in rows],
    }
    return ExperimentResult(
        [
            Table(
                "Derivatives of inverse dynamics, per state: time, then operations",
                COLUMNS,
                [row.cells for row in rows],
            )
        ],
        [_faster_everywhere(rows), *(_speedup_on_talos(row) for row in rows if row.title == "Talos")],
        [
            Bars("derivatives of inverse dynamics", groups, "us per state", seconds),
            Bars("pinocchio / idsva", groups, "ratio", speedups, log=False),
        ],
        [*lab.stand_ins(*({} if lab.quick else ROBOTS).values()), *_remarks(rows, missing)],
    )


def _race(lab: Lab) -> tuple[list[RobotRow], list[str]]:
    """The robots that are installed, and messages about the others."""
    robots = QUICK_ROBOTS if lab.quick else ROBOTS
    algorithms = [inverse(k) for k in METHODS]
    lab.plan(len(robots) * len(algorithms))
    rows, missing = [], []
    for title, name in robots.items():
        try:
            rows.append(RobotRow(title, lab.robot(name).nv, lab.race(name, algorithms)))
        except NotInstalled as error:
            missing.append(f"missing: {error}")
    return rows, missing


def _faster_everywhere(rows: list[RobotRow]) -> Claim:
    times = [row.time for row in rows if row.time is not None]
    counts = [row.operations for row in rows if row.operations is not None]
    return Claim(
        "IDSVA is faster than Pinocchio's algorithm on every robot",
        FAVOURED,
        times,
        f"time {span(times)}, operations {span(counts)}",
        counted(counts),
    )


def _speedup_on_talos(row: RobotRow) -> Claim:
    time, operations = row.time or 0.0, row.operations or 0.0
    return Claim(
        f"{TALOS[0]}x on Talos with gcc, {TALOS[1]}x with clang",
        Figure.of(TALOS),
        [time],
        f"time {time:.2f}x, operations {operations:.2f}x",
        "the operations differ by no more than this; the rest of the paper's gain comes from memory access",
    )


def _remarks(rows: list[RobotRow], missing: list[str]) -> list[str]:
    body = [x for row in rows if (x := count_ratio(row.found["idsva-body"], row.found["idsva"])) is not None]
    return [
        "The paper's abstract and Sec. V-C give Talos' 1.4x for ID, its conclusions for FD; Fig. 5 is of ID.",
        *missing,
        f"Body coordinates take {span(body)} the operations of ground coordinates here, unlike in Fig. 3: they keep "
        "the zeros of a robot's placements and axes, which straight-line code leaves out.",
    ]
