"""A C program that calls every exported function, and compares the results with numbers from Python."""

from __future__ import annotations

import numpy as np

from ..evaluate.evaluator import Evaluator
from ..jit.number import DOUBLE
from ..model import configuration
from .functions import Argument, Function, Package
from .header import ctype

SEED = 0
# Largest difference from Python's numbers, relative to the largest of a result. M^-1 magnifies rounding errors by the
# ratio of the largest to the smallest inertia.
TOLERANCE = {DOUBLE.name: 1e-9, "float": 1e-2}
COMPARE = """\
static int compare(const char *name, int flags, const NUMBER *found, const NUMBER *want, int size) {
  double worst = 0, largest = 0;
  for (int k = 0; k < size; k++) {
    double error = found[k] - want[k], number = want[k];
    error = error < 0 ? -error : error;
    number = number < 0 ? -number : number;
    if (!(error <= worst)) worst = error;
    if (number > largest) largest = number;
  }
  int good = flags == 0 && worst <= TOLERANCE * (largest > 1 ? largest : 1);
  printf("%s: flags %d, largest difference %.1e of %.3g: %s\\n", name, flags, worst, largest, good ? "good" : "WRONG");
  return !good;
}
"""


def example(package: Package, evaluator: Evaluator) -> str:
    rng = np.random.default_rng(SEED)
    arrays: list[str] = []
    calls: list[str] = []
    for f in package.functions:
        given, results = state(package, evaluator, f, rng)
        short = f.symbol
        for x, numbers in zip((*f.passed, *f.outputs), (*given, *results), strict=True):
            arrays.append(constant(package, f"{short}_{x.name}", numbers))
        calls += call(package, f)
    text = COMPARE.replace("NUMBER", ctype(package)).replace("TOLERANCE", f"{TOLERANCE[package.kind.name]:g}")
    return "\n".join(
        [
            f"/* Calls every function of {package.name}.h at one state, and compares with the numbers of Python. */",
            "#include <stdio.h>",
            "",
            f'#include "{package.name}.h"',
            "",
            *arrays,
            "",
            f"static unsigned char workspace[{package.name.upper()}_WORKSPACE];",
            "",
            text,
            "int main(void) {",
            "  int wrong = 0, flags;",
            *calls,
            "  return wrong;",
            "}",
            "",
        ]
    )


def state(
    package: Package, evaluator: Evaluator, f: Function, rng: np.random.Generator
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Inputs, as numbers of the exported kind, and the results of the NumPy reference in double precision."""
    drawn = {x.name: draw(package, f, x, rng).astype(package.kind.dtype).astype(float) for x in f.passed}
    fixed = {x.name: x.fixed for x in f.inputs if x.fixed is not None}
    results = evaluator.reference(f.record, drawn | fixed, **f.options)
    return list(drawn.values()), [np.asarray(r) for r in results[: len(f.outputs)]]


def draw(package: Package, f: Function, x: Argument, rng: np.random.Generator) -> np.ndarray:
    if f.record.input(x.name).axes == ("q",):
        return configuration.random(package.model, rng, ())
    if x.shape == (1,):  # a share or a restitution
        return np.array([0.25])
    return rng.uniform(-1, 1, x.shape)


def constant(package: Package, name: str, numbers: np.ndarray) -> str:
    shown = ", ".join(format(float(y), ".17g") for y in np.ravel(numbers))
    return f"static const {ctype(package)} {name}[{numbers.size}] = {{{shown}}};"


def call(package: Package, f: Function) -> list[str]:
    """The lines that call one function, and its form for batches with one sample."""
    results = [f"    {ctype(package)} {x.name}[{x.size}];" for x in f.outputs]
    given = ", ".join([*(f"{f.symbol}_{x.name}" for x in f.passed), *(x.name for x in f.outputs), "workspace"])
    lines = ["  {", *results]
    for batch in (False, True)[: 1 + bool(f.batch_workspace)]:
        lines.append(f"    flags = {f.symbol}{'_batch(1, ' if batch else '('}{given});")
        for x in f.outputs:
            title = f"{f.symbol}{'_batch' * batch} {x.name}"
            lines.append(f'    wrong |= compare("{title}", flags, {x.name}, {f.symbol}_{x.name}, {x.size});')
    return [*lines, "  }"]
