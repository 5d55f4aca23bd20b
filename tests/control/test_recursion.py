"""The Riccati recursion as a function of the loop language: its definition, and machine code for anything in lanes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from control_helpers import random_quadratic
from featherjet.control.solvers.recursion import RESULTS, riccati_spec
from featherjet.control.solvers.riccati import Riccati
from featherjet.jit import engine
from featherjet.jit.loops.emit import emit_loops
from featherjet.jit.loops.kernel import LoopKernel
from featherjet.jit.loops.spec import Fill, LoopSpec
from featherjet.jit.number import DOUBLE
from featherjet.math.loops import ArrayLoops, LoopArray

N, M, T, SAMPLES = 6, 3, 4, 5
SIZES = {"T": T, "knots": T + 1, "kept": T + 1, "gaps": 1}


def problems(bounded: bool) -> list[np.ndarray]:
    """Inputs of the recursion for some problems, the last of which has no minimum."""
    d, rng = random_quadratic(N, M, T, SAMPLES), np.random.default_rng(3)
    d.Luu = d.Luu.copy()
    d.Luu[-1, 2] -= 50.0 * np.eye(M)
    inputs = [d.Fx, d.Fu, d.Lx, d.Lu, d.Lxx, d.Lxu, d.Luu, 0.1 * rng.normal(size=d.Lx.shape), np.full(SAMPLES, 1e-3)]
    bounds = [sign * 0.3 * rng.random((SAMPLES, T, M)) for sign in (-1, 1)]
    return [*inputs, *bounds] if bounded else inputs


def by_definition(spec: LoopSpec, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
    given = [LoopArray(np.moveaxis(x, 0, -1).copy(), x.ndim - 1) for x in inputs]
    shapes = {
        k: tuple(SIZES.get(a, a) for a in axes)  # type: ignore[arg-type]
        for k, axes in (*spec.results.items(), *spec.work.items())
    }
    others = {k: LoopArray(np.zeros((*shape, SAMPLES)), len(shape)) for k, shape in shapes.items()}
    with np.errstate(over="ignore", invalid="ignore"):  # of the problem that has no minimum
        spec.function(ArrayLoops((SAMPLES,)), *given, *others.values(), *SIZES.values(), **dict(spec.constants))
    return {k: np.moveaxis(others[k].values, -1, 0) for k in spec.results}


@pytest.mark.parametrize("bounded", [False, True])
def test_the_definition_is_what_solvers_run(bounded: bool) -> None:
    inputs = problems(bounded)
    found = by_definition(riccati_spec(N, M, bounded), inputs)
    d = random_quadratic(N, M, T, SAMPLES)
    d.Luu = inputs[6]
    bounds = (inputs[-2], inputs[-1]) if bounded else None
    gains = Riccati(T, N, M, SAMPLES, bounded=bounded)(d, inputs[7], inputs[8], bounds)
    np.testing.assert_array_equal(gains.failed, [0, 0, 0, 0, 1])
    for name in RESULTS:
        x, y = getattr(gains, name)[:-1], found[name][:-1]
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * max(1.0, np.abs(y).max()), err_msg=name)


@pytest.mark.parametrize("cpu", engine.targets())
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("fill", Fill)
@pytest.mark.parametrize("bounded", [False, True])
def test_machine_code_does_as_the_definition(
    bounded: bool, fill: Fill, dtype: Any, cpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(engine.VARIABLE, cpu)
    spec, inputs = riccati_spec(N, M, bounded, fill), problems(bounded)
    found, _ = LoopKernel(spec, SIZES)([x.astype(dtype) for x in inputs], None, 1)
    tolerance = 1e-12 if dtype is np.float64 else 1e-4  # rounding, times the condition of each Quu, over some knots
    for (name, y), x in zip(by_definition(spec, inputs).items(), found, strict=True):
        np.testing.assert_allclose(
            x[:-1], y[:-1], rtol=0, atol=tolerance * max(1.0, np.abs(y[:-1]).max()), err_msg=name
        )
    np.testing.assert_array_equal(found[-1], [0, 0, 0, 0, 1])


@pytest.mark.parametrize("fill", Fill)
def test_the_code_can_run_alone(fill: Fill) -> None:
    """It calls nothing but what it defines, and LLVM's own instructions."""
    cpu = engine.target()
    platform = replace(cpu.platform, alone=True)
    texts = [x.text for x in emit_loops(riccati_spec(N, M, True, fill), cpu.lanes, platform, DOUBLE)]
    names = {kind: set(re.findall(kind + r' [^@]*@"([^"]+)"', "\n".join(texts))) for kind in ("declare", "define")}
    assert "entry" in names["define"]
    assert {x for x in names["declare"] - names["define"] if not x.startswith("llvm.")} == set()
