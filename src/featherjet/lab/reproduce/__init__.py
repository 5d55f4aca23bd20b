"""The experiments of the papers, run again by `featherjet reproduce`. To add one: a function of a Lab, a line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from . import accuracy, carpentier, chains, counting, products, robots, rounding, summary, trees
from .lab import Lab
from .report import Outcome


class Item(NamedTuple):
    """An experiment: where it stands in which paper, what it shows, and how it is run."""

    where: str
    title: str
    run: Callable[[Lab], Outcome]


ITEMS: dict[str, Item] = {
    "singh-fig2": Item("[IDSVA] Fig. 2", "methods for ID and FD derivatives on serial chains", chains.figure2),
    "singh-fig3": Item("[IDSVA] Fig. 3", "body against ground coordinates", chains.figure3),
    "singh-fig4": Item("[IDSVA] Fig. 4", "ID derivatives on chains and trees, against Pinocchio's", trees.figure4),
    "singh-fig5": Item("[IDSVA] Fig. 5", "ID derivatives of well-known robots, against Pinocchio's", robots.figure5),
    "singh-fig6": Item("[IDSVA] Fig. 6", "FD derivatives on chains and trees, against Pinocchio's", trees.figure6),
    "singh-fig7": Item("[IDSVA] Fig. 7, Table III", "AZA against DMM, LTL and the direct method", products.figure7),
    "singh-accuracy": Item("[IDSVA] Sec. V-A", "errors against complex step", accuracy.section5a),
    "singh-table1": Item("[IDSVA] Table I", "kinds of methods: effort, speed, accuracy", summary.table1),
    "carpentier-table1": Item("[RSS18] Table I, Fig. 2", "derivatives, finite differences, M^-1", carpentier.table1),
    "carpentier-fig3": Item("[RSS18] Fig. 3", "rounding in finite differences of what is zero", rounding.figure3),
    "guenter-rose": Item("[BP]", "operations of the Balafoutis-Patel recursion", counting.operation_counts),
}

__all__ = ["ITEMS", "Item", "Lab", "Outcome"]
