"""[IDSVA] Sec. V-A: errors of derivatives of forward dynamics against complex step, as chains grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...algorithms.derivatives import methods
from ...model.model import Array
from ..bench.run import slope
from ..internals import reference_results
from .lab import CHAIN, Lab
from .plots import Lines
from .report import Claim, Outcome, Table, TableColumn, held

SIZES, QUICK_SIZES = (5, 10, 20, 50, 100), (4, 8)
SAMPLES = 4
COMPLEX_STEP = "complex-step"
METHODS = ("abacr", "fdsva-dmm", "fdsva-aza", "fdsva-ltl", "fdcr", "direct", COMPLEX_STEP)
WIDE = bool(np.finfo(np.longdouble).eps < 1e-18)  # whether numbers of more than 64 bits are there to judge by
EXACT_NAME = "80-bit numbers" if WIDE else "complex step (this machine has no longer numbers)"


class Errors(NamedTuple):
    """Errors of one method."""

    whole: float  # root mean square of the errors, relative to that of the entries
    median: float  # of the relative errors of the terms
    terms: float  # root mean square of the relative errors of the terms, as in the paper


ErrorTable = dict[str, dict[int, Errors]]  # by method and size


def section5a(lab: Lab) -> Outcome:
    """Errors of every method against complex step; and of all, complex step included, against longer numbers."""
    by_step, exact = _errors(lab)
    return Outcome(
        [
            _table("Against complex step: rms error, relative to the matrix' rms", by_step, "whole"),
            _table(f"Against {EXACT_NAME}: the same", exact, "whole"),
            _table(f"Against {EXACT_NAME}: median relative error of the terms", exact, "median"),
            _table(f"Against {EXACT_NAME}: rms relative error of the terms", exact, "terms"),
        ],
        [_small_errors(by_step, exact), _abacr_is_better(by_step, exact), _grow_as_powers(exact)],
        [
            _lines("against complex step, whole matrix", by_step, "whole"),
            _lines(f"against {EXACT_NAME}, whole matrix", exact, "whole"),
            _lines(f"against {EXACT_NAME}, median term", exact, "median"),
        ],
        [f"Powers of N are fitted to errors against {EXACT_NAME}."],
    )


def _errors(lab: Lab) -> tuple[ErrorTable, ErrorTable]:
    """Errors against complex step, and against the direct method on longer numbers."""
    sizes = QUICK_SIZES if lab.quick else SIZES
    lab.plan(len(sizes) * len(METHODS))
    by_step: ErrorTable = {m: {} for m in METHODS if m != COMPLEX_STEP}
    exact: ErrorTable = {m: {} for m in METHODS}
    for n in sizes:
        name = CHAIN.format(n)
        states = lab.states(name, SAMPLES)
        inputs = {k: states[k] for k in ("q", "v", "tau")}
        longer = {k: x.astype(np.longdouble) for k, x in inputs.items()}
        step = _derivatives(lab, name, inputs, COMPLEX_STEP)
        truth = _derivatives(lab, name, longer, "direct") if WIDE else step
        for m in METHODS:
            lab.step(f"{m}, {name}")
            found = _derivatives(lab, name, inputs, m)
            exact[m][n] = errors(found, truth)
            if m in by_step:
                by_step[m][n] = errors(found, step)
    return by_step, exact


def _derivatives(lab: Lab, name: str, inputs: dict[str, Array], method: str) -> tuple[Array, ...]:
    """da/dq and da/dv."""
    return reference_results(lab.robot(name).model, methods.FD, inputs, method)[:2]


def errors(found: Sequence[Array], true: Sequence[Array]) -> Errors:
    """Over da/dq and da/dv of all samples together."""
    x, t = (np.concatenate([np.ravel(m) for m in ms]) for ms in (found, true))
    e = x - t
    nonzero = t != 0
    terms = np.abs(e[nonzero] / t[nonzero]).astype(float)
    whole = np.sqrt(np.mean(e**2) / np.mean(t**2))
    return Errors(float(whole), float(np.median(terms)), float(np.sqrt(np.mean(terms**2))))


def _small_errors(by_step: ErrorTable, exact: ErrorTable) -> Claim:
    N = max(exact["direct"])
    fdsva, fdcr, direct = by_step["fdsva-dmm"][N], by_step["fdcr"][N], exact["direct"][N]
    return Claim(
        "FDSVA and FDCR: term-by-term rms relative error about 1e-12 at N = 100",
        f"N = {N}: median term {fdsva.median:.0e} and {fdcr.median:.0e}, the whole matrix {fdsva.whole:.0e} and "
        f"{fdcr.whole:.0e}, but rms of the terms {fdsva.terms:.0e} and {fdcr.terms:.0e}; direct has {direct.terms:.0e}",
        held(fdsva.terms < 1e-10),
        "motion at one end of these chains hardly reaches the other: entries fall off by orders of magnitude, and "
        "products with M^-1 compute the smallest as differences of large ones. Methods that follow the articulated "
        "bodies (ABACR, direct) get them right. The paper does not say which chains it used",
    )


def _abacr_is_better(by_step: ErrorTable, exact: ErrorTable) -> Claim:
    """Judged by longer numbers: against complex step no error is smaller than that of complex step itself."""
    N = max(exact["abacr"])
    abacr, fdsva, direct = (exact[k][N].whole for k in ("abacr", "fdsva-dmm", "direct"))
    return Claim(
        "ABACR is more precise: 1e-13 at N = 100",
        f"N = {N}: ABACR {abacr:.0e}, FDSVA {fdsva:.0e}, direct {direct:.0e} (against complex step ABACR has "
        f"{by_step['abacr'][N].whole:.0e}, which is the error of complex step)",
        held(abacr < fdsva),
    )


def _grow_as_powers(exact: ErrorTable) -> Claim:
    powers = {m: slope(np.array(list(e)), np.array([x.whole for x in e.values()])) for m, e in exact.items()}
    return Claim(
        "Errors grow as a power of N",
        ", ".join(f"{m} {p:.1f}" for m, p in powers.items()),
        held(all(p < 4 for p in powers.values())),
    )


def _table(title: str, found: ErrorTable, kind: str) -> Table:
    rows = [[n, *(getattr(e[n], kind) for e in found.values())] for n in next(iter(found.values()))]
    return Table(title, [TableColumn("N", "count"), *(TableColumn(m, "error") for m in found)], rows)


def _lines(title: str, found: ErrorTable, kind: str) -> Lines:
    curves = {m: (list(map(float, e)), [getattr(x, kind) for x in e.values()]) for m, e in found.items()}
    return Lines(title, "N", "error", curves, marked=True)
