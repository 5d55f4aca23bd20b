"""[IDSVA] Sec. V-A: errors of derivatives of forward dynamics against complex step, as chains grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...evaluate.reference import Reference
from ...model.model import Array
from ..bench.run import slope
from .lab import Lab
from .plots import Lines
from .report import Claim, Column, Outcome, Table, held

SIZES, QUICK_SIZES = (5, 10, 20, 50, 100), (4, 8)
SAMPLES = 4
METHODS = ("abacr", "fdsva-dmm", "fdsva-aza", "fdsva-ltl", "fdcr", "direct", "complex-step")
WIDE = bool(np.finfo(np.longdouble).eps < 1e-18)  # whether there is a longer number to tell the truth
QUANTITY = "forward_dynamics_derivatives"


class Errors(NamedTuple):
    """Of one method: relative to the matrix, and term by term as the paper does."""

    whole: float  # root mean square of the errors, over that of the entries
    median: float  # of the relative errors of the terms
    terms: float  # their root mean square


def section5a(lab: Lab) -> Outcome:
    """Errors of every method against complex step, and of all, complex step too, against longer numbers."""
    sizes = QUICK_SIZES if lab.quick else SIZES
    lab.plan(len(sizes) * len(METHODS))
    against_step: dict[str, dict[int, Errors]] = {m: {} for m in METHODS[:-1]}
    against_truth: dict[str, dict[int, Errors]] = {m: {} for m in METHODS}
    for n in sizes:
        reference, given = Reference(lab.robot(f"chain{n}").model), lab.states(f"chain{n}", SAMPLES)
        inputs = {k: given[k] for k in ("q", "v", "tau")}
        step = reference.run(QUANTITY, inputs, method="complex-step")[:2]
        longer = {k: x.astype(np.longdouble) for k, x in inputs.items()}
        truth = reference.run(QUANTITY, longer, method="direct")[:2] if WIDE else step
        for m in METHODS:
            lab.step(f"{m}, chain{n}")
            found = reference.run(QUANTITY, inputs, method=m)[:2]
            against_truth[m][n] = errors(found, truth)
            if m in against_step:
                against_step[m][n] = errors(found, step)
    last = max(sizes)
    fdsva, fdcr, abacr = (against_step[k] for k in ("fdsva-dmm", "fdcr", "abacr"))
    # what is told by complex step is no smaller than its own error, so ABACR is judged by the longer numbers
    true_abacr, true_fdsva, true_direct = (against_truth[k] for k in ("abacr", "fdsva-dmm", "direct"))
    powers = {m: slope(np.array(list(e)), np.array([x.whole for x in e.values()])) for m, e in against_truth.items()}
    claims = [
        Claim(
            "FDSVA and FDCR: term-by-term rms relative error about 1e-12 at N = 100",
            f"N = {last}: median term {fdsva[last].median:.0e} and {fdcr[last].median:.0e}, the whole matrix "
            f"{fdsva[last].whole:.0e} and {fdcr[last].whole:.0e}, but rms of the terms {fdsva[last].terms:.0e} and "
            f"{fdcr[last].terms:.0e}; direct has {true_direct[last].terms:.0e}",
            held(fdsva[last].terms < 1e-10),
            "what happens at one end of these chains hardly reaches the other: entries fall off by orders of magnitude "
            "and products with M^-1 find the smallest as differences of large ones. Methods that follow the "
            "articulated bodies (ABACR, direct) get them right. The paper does not say which chains it took",
        ),
        Claim(
            "ABACR is more precise: 1e-13 at N = 100",
            f"N = {last}: ABACR {true_abacr[last].whole:.0e}, FDSVA {true_fdsva[last].whole:.0e}, "
            f"direct {true_direct[last].whole:.0e} (against complex step ABACR has {abacr[last].whole:.0e}, "
            "which is the error of complex step)",
            held(true_abacr[last].whole < true_fdsva[last].whole),
        ),
        Claim(
            "Errors grow as a power of N",
            ", ".join(f"{m} {p:.1f}" for m, p in powers.items()),
            held(all(p < 4 for p in powers.values())),
        ),
    ]
    truth_name = "80-bit numbers" if WIDE else "complex step (there are no longer numbers here)"
    return Outcome(
        [
            _table("Against complex step: rms error, relative to the matrix' rms", against_step, "whole"),
            _table(f"Against {truth_name}: the same", against_truth, "whole"),
            _table(f"Against {truth_name}: median relative error of the terms", against_truth, "median"),
            _table(f"Against {truth_name}: rms relative error of the terms", against_truth, "terms"),
        ],
        claims,
        [
            _lines("against complex step, whole matrix", against_step, "whole"),
            _lines(f"against {truth_name}, whole matrix", against_truth, "whole"),
            _lines(f"against {truth_name}, median term", against_truth, "median"),
        ],
        [f"Powers of N are fitted to errors against {truth_name}."],
    )


def errors(found: Sequence[Array], true: Sequence[Array]) -> Errors:
    """Over da/dq and da/dv of all samples together."""
    x, t = (np.concatenate([np.ravel(m) for m in ms]) for ms in (found, true))
    e = x - t
    there = t != 0
    terms = np.abs(e[there] / t[there]).astype(float)
    whole = np.sqrt(np.mean(e**2) / np.mean(t**2))
    return Errors(float(whole), float(np.median(terms)), float(np.sqrt(np.mean(terms**2))))


def _table(title: str, found: dict[str, dict[int, Errors]], kind: str) -> Table:
    rows = [[n, *(getattr(e[n], kind) for e in found.values())] for n in next(iter(found.values()))]
    return Table(title, [Column("N", "count"), *(Column(m, "error") for m in found)], rows)


def _lines(title: str, found: dict[str, dict[int, Errors]], kind: str) -> Lines:
    curves = {m: (list(map(float, e)), [getattr(x, kind) for x in e.values()]) for m, e in found.items()}
    return Lines(title, "N", "error", curves, marked=True)
