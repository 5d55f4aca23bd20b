"""The experiments of the papers, run again by `featherjet reproduce`.

To add one, write a function of a Lab that returns an ExperimentResult, and add a line to EXPERIMENTS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from . import accuracy, carpentier, chains, generated, products, recursions, robots, rounding, summary, trees
from .lab import Lab
from .report import ExperimentResult


class Experiment(NamedTuple):
    """Where it is in which paper, what it shows, and the function that runs it."""

    where: str
    title: str
    run: Callable[[Lab], ExperimentResult]


EXPERIMENTS: dict[str, Experiment] = {
    "singh-fig2": Experiment("[IDSVA] Fig. 2", "methods for ID and FD derivatives on serial chains", chains.figure2),
    "singh-fig3": Experiment("[IDSVA] Fig. 3", "body against ground coordinates", chains.figure3),
    "singh-fig4": Experiment(
        "[IDSVA] Fig. 4", "ID derivatives on chains and trees, against Pinocchio's", trees.figure4
    ),
    "singh-fig5": Experiment(
        "[IDSVA] Fig. 5", "ID derivatives of well-known robots, against Pinocchio's", robots.figure5
    ),
    "singh-fig6": Experiment(
        "[IDSVA] Fig. 6", "FD derivatives on chains and trees, against Pinocchio's", trees.figure6
    ),
    "singh-fig7": Experiment(
        "[IDSVA] Fig. 7, Table III", "AZA against DMM, LTL and the direct method", products.figure7
    ),
    "singh-accuracy": Experiment("[IDSVA] Sec. V-A", "errors against complex step", accuracy.section5a),
    "singh-table1": Experiment("[IDSVA] Table I", "kinds of methods: effort, speed, accuracy", summary.table1),
    "carpentier-table1": Experiment(
        "[RSS18] Table I, Fig. 2", "derivatives, finite differences, M^-1", carpentier.table1
    ),
    "carpentier-autodiff": Experiment(
        "[RSS18] Sec. V-A.2", "against automatic differentiation with generated code", generated.section5a2
    ),
    "carpentier-fig3": Experiment("[RSS18] Fig. 3", "rounding in finite differences of what is zero", rounding.figure3),
    "guenter-rose": Experiment("[BP]", "operations of the Balafoutis-Patel recursion", recursions.operation_counts),
}

__all__ = ["EXPERIMENTS", "Experiment", "ExperimentResult", "Lab"]
