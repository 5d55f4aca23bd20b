"""Write the tables of operation counts in docs/methods.md and docs/direct.md, counted in traced code.

    python tools/operations.py           write all tables, in about two minutes
    python tools/operations.py --print   print them instead

Counts are of arithmetic alone: multiplications, additions, subtractions, negations, divisions, square roots, sines and
cosines. Constants are folded, equal operations shared, and zeros left out. As instructions, a product that only one
sum uses counts as one with it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from featherjet.lab.bench.robots import entrant
from featherjet.lab.reproduce.algorithms import DEDICATED, FACTORISED, Algorithm, TracedAlgorithm, forward, inverse
from featherjet.lab.reproduce.growth import Growth
from featherjet.model.tree import Tree

DOCS = Path(__file__).parent.parent / "docs"
ARITHMETIC = ("mul", "add", "sub", "neg", "div", "sqrt", "sin", "cos")
ROBOTS = {
    "chain of 20": "chain20",
    "binary tree of 31": "tree31x2",
    "panda, 7 dofs": "panda",
    "hyq, free base, 18": "hyq",
    "talos_full, free base, 50": "talos_full",
    "chain of 100": "auto100",
    "binary tree of 100": "tree100x2",
    "arm, 7 dofs": "arm",
}
METHODS: dict[str, Algorithm] = {
    **{f"inverse: `{k}`": inverse(k, 3) for k in
       ("idsva", "idsva-body", "pinocchio", "balafoutis-patel", "chain-rule", "lagrangian")},
    **{f"forward: `{k}`": forward(k) for k in
       ("direct", "fdsva-factor", "fdsva-dmm", "fdsva-aza", "fdsva-ltl", "pinocchio", "fdcr", "abacr")},
    "M^-1: `direct`": DEDICATED,
    "M^-1: `ltl`": FACTORISED,
}  # fmt: skip
METHOD_COLUMNS = ("chain of 20", "binary tree of 31", "panda, 7 dofs", "hyq, free base, 18")
DIRECT = {"direct": "direct", "DMM": "fdsva-dmm", "LTL": "fdsva-ltl", "AZA": "fdsva-aza"}
DIRECT_ROWS = (
    "panda, 7 dofs", "hyq, free base, 18", "talos_full, free base, 50", "chain of 100", "binary tree of 31",
    "binary tree of 100",
)  # fmt: skip
AUTODIFF = {
    '`method="autodiff"`': (inverse("autodiff", 3), forward("autodiff")),
    '`method="autodiff-reverse"`': (inverse("autodiff-reverse", 3), forward("autodiff-reverse")),
    'by hand: `method="idsva"`, `method="direct"`': (inverse("idsva", 3), forward("direct")),
}


@cache
def tree(robot: str) -> Tree:
    return Tree(entrant(ROBOTS[robot]).robot.model)


def operations(algorithm: Algorithm, robot: str) -> int:
    """Arithmetic operations, nothing fused."""
    counts = TracedAlgorithm(algorithm, tree(robot)).operation_counts()
    return sum(n for name, n in counts.items() if name in ARITHMETIC)


def instructions(algorithm: Algorithm, robot: str) -> int:
    """A multiply-add counts as one; long chains by the polynomial that counts on short ones determine."""
    name = ROBOTS[robot]
    if name.startswith("auto"):
        return Growth.of(algorithm).at(int(name.removeprefix("auto")))
    return TracedAlgorithm(algorithm, tree(robot)).instructions


def method_row(title: str) -> list[str]:
    return [title, *(f"{operations(METHODS[title], robot):,}" for robot in METHOD_COLUMNS)]


def direct_row(robot: str) -> list[str]:
    return [robot, *(f"{instructions(forward(method), robot):,}" for method in DIRECT.values())]


def autodiff_row(title: str) -> list[str]:
    return [title, *(f"{operations(x, 'arm, 7 dofs'):,}" for x in AUTODIFF[title])]


class Table:
    """A table of a page: its head, which finds it there, and its rows by title."""

    def __init__(
        self, page: str, columns: tuple[str, ...], titles: tuple[str, ...], row: Callable[[str], list[str]]
    ) -> None:
        self.page, self.titles, self.row = DOCS / page, titles, row
        self.head = f"| {' | '.join(columns)} |\n|---{'|---:' * (len(columns) - 1)}|\n"

    def line(self, title: str) -> str:
        return f"| {' | '.join(self.row(title))} |"

    def text(self) -> str:
        return self.head + "".join(self.line(title) + "\n" for title in self.titles)

    def write(self) -> None:
        page = self.page.read_text()
        start = page.index(self.head)
        end = page.index("\n\n", start) + 1
        self.page.write_text(page[:start] + self.text() + page[end:])


TABLES = {
    "methods": Table("methods.md", ("arithmetic operations", *METHOD_COLUMNS), tuple(METHODS), method_row),
    "autodiff": Table(
        "methods.md", ("arithmetic operations, arm", "inverse dynamics", "forward dynamics"), tuple(AUTODIFF),
        autodiff_row,
    ),
    "direct": Table("direct.md", ("arithmetic instructions", *DIRECT), DIRECT_ROWS, direct_row),
}  # fmt: skip


def main() -> None:
    for table in TABLES.values():
        if "--print" in sys.argv:
            print(table.text())
        else:
            table.write()


if __name__ == "__main__":
    main()
