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
from .plots import LinePanel
from .report import Claim, ExperimentResult, Table, TableColumn, about, error_of

SIZES, QUICK_SIZES = (5, 10, 20, 50, 100), (4, 8)
SAMPLES = 4
HEADLINE = 100  # joints for which the paper gives numbers
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


def section5a(lab: Lab) -> ExperimentResult:
    """Errors of every method against complex step; and of all, complex step included, against longer numbers."""
    by_step, exact = _errors(lab)
    return ExperimentResult(
        [
            _table("Against complex step: rms relative error of the terms", by_step, "terms"),
            _table("Against complex step: rms error, relative to the matrix' rms", by_step, "whole"),
            _table(f"Against {EXACT_NAME}: the same", exact, "whole"),
            _table(f"Against {EXACT_NAME}: median relative error of the terms", exact, "median"),
            _table(f"Against {EXACT_NAME}: rms relative error of the terms", exact, "terms"),
        ],
        [
            _error_at(
                by_step,
                "FDSVA and FDCR have an rms relative error of about 1e-12 at N = 100",
                1e-12,
                "fdsva-dmm",
                "fdcr",
            ),
            _error_at(by_step, "ABACR has one of 1e-13", 1e-13, "abacr"),
            _abacr_is_better(by_step),
            _grow_as_powers(by_step),
        ],
        [
            _lines("against complex step, whole matrix", by_step, "whole"),
            _lines(f"against {EXACT_NAME}, whole matrix", exact, "whole"),
            _lines(f"against {EXACT_NAME}, median term", exact, "median"),
        ],
        [
            "Judged by the paper's metric, the rms of the relative errors of the terms against complex step, in which "
            "the smallest terms weigh most. The tables show errors of whole matrices, too, and errors against "
            f"{EXACT_NAME}, of which complex step has some as well.",
        ],
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
        tau = np.random.default_rng(lab.seed).normal(size=states["tau"].shape)  # any control, as in the paper
        inputs = {"q": states["q"], "v": states["v"], "tau": tau}
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


def _error_at(by_step: ErrorTable, said: str, size: float, *names: str) -> Claim:
    """The paper's error at N = 100 beside ours, as it measured: against complex step."""
    found = {m: by_step[m][HEADLINE] for m in names if HEADLINE in by_step[m]}
    whole = ", ".join(f"{m} {e.whole:.0e}" for m, e in found.items())
    return Claim(
        said,
        error_of(size),
        [e.terms for e in found.values()],
        ", ".join(f"{m} {e.terms:.0e}" for m, e in found.items()) + (f"; of the whole: {whole}" if found else ""),
        "the smallest entries are differences of large numbers; relative to the whole matrix errors are smaller",
    )


def _abacr_is_better(by_step: ErrorTable) -> Claim:
    N = max(by_step["abacr"])
    gain = {m: by_step[m][N].terms / by_step["abacr"][N].terms for m in ("fdsva-dmm", "fdcr")}
    return Claim(
        "ABACR is more precise than FDSVA and FDCR, by ten times",
        about(10.0),
        list(gain.values()),
        f"N = {N}: " + ", ".join(f"{m} has {x:.1f} times its error" for m, x in gain.items()),
        "against complex step no method can show a smaller error than complex step has itself",
    )


def _grow_as_powers(by_step: ErrorTable) -> Claim:
    """On logarithmic axes, errors of a power of N lie on a line: its fit has a correlation of one."""
    found: dict[str, tuple[float, float]] = {}
    for m, e in by_step.items():
        sizes, terms = np.array(list(e)), np.array([x.terms for x in e.values()])
        found[m] = slope(sizes, terms), float(np.corrcoef(np.log(sizes), np.log(terms))[0, 1])
    return Claim(
        "Errors grow linearly on a log-log scale",
        about(1.0, 1.1),
        [r for _, r in found.values()],
        ", ".join(f"{m} N^{p:.1f} (correlation {r:.2f})" for m, (p, r) in found.items()),
        "a few random states for each size scatter",
    )


def _table(title: str, found: ErrorTable, kind: str) -> Table:
    rows = [[n, *(getattr(e[n], kind) for e in found.values())] for n in next(iter(found.values()))]
    return Table(title, [TableColumn("N", "count"), *(TableColumn(m, "error") for m in found)], rows)


def _lines(title: str, found: ErrorTable, kind: str) -> LinePanel:
    curves = {m: (list(map(float, e)), [getattr(x, kind) for x in e.values()]) for m, e in found.items()}
    return LinePanel(title, "N", "error", curves, marked=True)
