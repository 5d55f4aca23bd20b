"""Code on disk follows what was traced: a change of any traced function makes new code, wherever it stands."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import featherjet as fj
from featherjet.control import Control, Cost, Custom, Phase, Problem
from featherjet.jit import cache
from featherjet.jit.kernel import compile
from featherjet.jit.straight import is_own

SETTING = """
import json, sys
import numpy as np
import featherjet as fj
from featherjet.model.builder import transform

builder = fj.ModelBuilder("ball")
builder.add_joint("ball", "spherical", None, transform())
builder.add_body("ball", 1.0, (0.1, 0.2, 0.3), np.eye(3))
MODEL = builder.build()
Q, V = np.array([0.1, -0.5, 0.7, 0.5]), np.array([0.3, -0.2, 0.4])
"""

# Each gives what compiled code computes, and the same by the function that was traced, on numbers.
PROBES = {
    "coordinates": """
robots = [fj.Robot(MODEL, backend=backend).with_convention("drake") for backend in ("compiled", "numpy")]
print(json.dumps([robot.integrate(Q, V).tolist() for robot in robots]))
""",
    "derivative": """
robots = [fj.Robot(MODEL, backend=backend) for backend in ("compiled", "numpy")]
print(json.dumps([fj.autodiff(robot, "gravity", by="q")(Q).ravel().tolist() for robot in robots]))
""",
    "bridge": """
from featherjet.bridges.ambient import Ambient, CompiledAmbient
from featherjet.model.configuration import Places
plain = Ambient(Places(MODEL))
print(json.dumps([x.cotangent(np, Q, V).tolist() for x in (CompiledAmbient(plain), plain)]))
""",
    "control": """
from featherjet.control.compiled.kernels import traced_kernel
from featherjet.control.residuals.references import quaternion, quaternions
code = traced_kernel(quaternion, {"R": (3, 3)}, "quaternion", "quaternions", [()] * 4)
turn = np.array([[1.0, 0.0, 0.0], [0.0, np.cos(2.0), -np.sin(2.0)], [0.0, np.sin(2.0), np.cos(2.0)]])
print(json.dumps([[float(x) for x in code([turn], None, 1)[0]], quaternions(turn).tolist()]))
""",
    "step": """
from featherjet.algorithms.integrators import semi_implicit_euler
from featherjet.control.compiled.integrators import euler_kernel
from featherjet.model.configuration import Places
places, x = Places(MODEL), np.concatenate([Q, V])
code = euler_kernel(places)
print(json.dumps([code([x, V, np.array([0.1])], None, 1)[0][0].tolist(), semi_implicit_euler(places, x, V, 0.1)[0]]))
""",
    "transition": """
from featherjet.transitions import rodrigues
from featherjet.transitions.compiled import SampledFormula
x = np.linspace(-1, 1, 9)[None]
print(json.dumps([SampledFormula(rodrigues.lift_planar, 1, 9, c)(V[:1], x)[0].tolist() for c in (True, False)]))
""",
    "treejit": """
from featherjet.algorithms.contacts.feet import halfway
from featherjet.algorithms.scan import Scan
robot = fj.Robot(MODEL, backend="compiled")
code = robot.evaluator.steps(fj.Ground(robot, ["ball"]).core, (), False).halfway
given = V, Q[:3], V[::-1].copy()
found = code(given, None, 1)[0], halfway(Scan(robot.evaluator.tree, ()), *given)
print(json.dumps([[x.tolist() for x in y] for y in found]))
""",
    "casadi": """
from types import SimpleNamespace
from featherjet.casadi.pieces import step
from featherjet.control.residuals.signals import Sizes
from featherjet.model.configuration import Places
traced = step(SimpleNamespace(size=Sizes(Places(MODEL), 0, ()), hits=False))
given = {"x": np.concatenate([Q, V]), "a": V, "dt": np.array([0.1])}
found = traced.value.kernel()(list(given.values()), None, 1)[0][0]
print(json.dumps([x.ravel().astype(float).tolist() for x in (found, *traced.values(given))]))
""",
}


class Edit(NamedTuple):
    """A change of a source that some traced function feels, and the probe that sees it."""

    source: str
    before: str
    after: str
    probe: str


EDITS = [
    Edit("math/lie.py", "v = (0.5 * self.c[1]) * self.w", "v = (0.4 * self.c[1]) * self.w", "coordinates"),
    Edit(
        "model/manifolds.py",
        "turned(q, RotationVector(Vec3(*v), 1))",
        "turned(q, RotationVector(-Vec3(*v), 1))",
        "coordinates",
    ),
    Edit("conventions/charts.py", "turn.exp().times(real_last(q))", "real_last(q).times(turn.exp())", "coordinates"),
    Edit(
        "algorithms/configurations.py",
        "manifold.integrate(q, dv)",
        "manifold.integrate(q, [-x for x in dv])",
        "coordinates",
    ),
    Edit("evaluate/differentiation.py", "m.rate_map(q[part])", "m.rate_map(-q[part])", "derivative"),
    Edit("jit/autodiff.py", "lambda y, a, b: (b, a)", "lambda y, a, b: (b, 2 * a)", "derivative"),
    Edit(
        "bridges/ambient.py",
        "_transposed(m.rate_map_inverse(_entries(unit))), g) *",
        "_transposed(m.rate_map_inverse(_entries(unit))), -g) *",
        "bridge",
    ),
    Edit("algorithms/integrators.py", "w = [dt * (y + dt * z)", "w = [dt * (y - dt * z)", "step"),
    Edit("control/residuals/references.py", "ones[1], turns[0]]", "ones[1], -turns[0]]", "control"),
    Edit("transitions/rodrigues.py", "return [jets[0], jets[1], c, s", "return [jets[1], jets[0], c, s", "transition"),
    Edit("algorithms/contacts/feet.py", "[0.5 * (a + b) for", "[0.5 * (a - b) for", "treejit"),
    Edit("casadi/pieces.py", "vector([*q, *x[places.nq :]])", "vector([*q, *-x[places.nq :]])", "casadi"),
]


class Doubling:
    """A function that is an object of a class."""

    def __call__(self, x: Any) -> Any:
        return 2 * x


def twice(x: Any) -> Any:
    return 2 * x


def holding(function: Any) -> Any:
    """A function of the package that another one is a default argument of."""

    def call(x: Any, f: Any = function) -> Any:
        return f(x)

    call.__module__ = fj.__name__
    return call


class Copy:
    """A copy of the package, with a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.package, self.code = folder / "featherjet", folder / "code"
        shutil.copytree(Path(fj.__file__).parent, self.package)

    def run(self, *probes: str) -> list[np.ndarray]:
        """What probes find, (2, n) each: by compiled code, and by the traced function on numbers."""
        text = SETTING + "".join(PROBES[x] for x in probes)
        environment = os.environ | {
            "PYTHONPATH": str(self.package.parent), "FEATHERJET_CACHE_DIR": str(self.code),
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=False
        )
        assert not done.returncode, done.stderr
        return [np.array(json.loads(line)).reshape(2, -1) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("copy"))


@pytest.fixture(scope="module")
def unchanged(copy: Copy) -> dict[str, np.ndarray]:
    """What all probes find before any change; from then on their code is on disk."""
    probes = [x for x in PROBES if x != "casadi" or find_spec("casadi")]
    return dict(zip(probes, copy.run(*probes), strict=True))


@pytest.mark.parametrize("edit", EDITS, ids=lambda e: e.source)
def test_no_code_outlives_its_source(copy: Copy, unchanged: dict[str, np.ndarray], edit: Edit) -> None:
    if edit.probe not in unchanged:
        pytest.skip("CasADi is not installed")
    source = copy.package / edit.source
    text = source.read_text()
    assert text.count(edit.before) == 1
    source.write_text(text.replace(edit.before, edit.after))
    try:
        ((compiled, plain),) = copy.run(edit.probe)
    finally:
        source.write_text(text)
    earlier = unchanged[edit.probe]
    np.testing.assert_allclose(earlier[0], earlier[1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(compiled, plain, rtol=0, atol=1e-12)
    assert np.abs(plain - earlier[1]).max() > 1e-3


def test_users_functions_of_one_name_have_codes_of_their_own() -> None:
    """A key cannot tell what a function outside the package does: its trace does."""
    kernels = [compile(f, {"x": (2,)}, "key", "name") for f in (lambda x: [2 * x], lambda x: [3 * x])]
    found = [kernel.values(np.ones((1, 2)))[0] for kernel in kernels]
    np.testing.assert_array_equal(found, [[[2.0, 2.0]], [[3.0, 3.0]]])


@pytest.mark.parametrize(
    "function",
    [
        twice,
        Doubling(),
        Doubling().__call__,
        partial(np.multiply, Doubling),
        partial(fj.load, robot=twice),
        partial(fj.load, [{"robot": (twice,)}]),
        holding(twice),
        Custom(twice).rows,
    ],
)
def test_what_a_user_hands_in_is_not_the_packages_own(function: Any) -> None:
    assert not is_own(function)


@pytest.mark.parametrize(
    "function", [fj.load, fj.Robot.gravity, np.add, partial(fj.load, ["arm"]), len, Control().rows, holding(len)]
)
def test_the_packages_own_functions_are_known_by_their_keys(function: Any) -> None:
    assert is_own(function)


def test_problems_with_users_residuals_of_one_name_differ() -> None:
    """Also in memory, where kernels of problems are found again by their keys."""
    robot = fj.Robot(fj.models.chain(2), backend="compiled")
    x, u = np.zeros((2, 4)), np.ones((1, 2))

    def cost(factor: float) -> float:
        term = Cost(Custom(lambda at: [factor * at.u[0]], name="effort"))
        return float(Problem(robot, np.zeros(4), [Phase(1, 0.1, [term])]).values(x, u).cost.sum())

    np.testing.assert_allclose(cost(3.0), 9 * cost(1.0))


def test_a_package_without_sources_keeps_code_to_one_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "jit" / "cache.pyc"))
    assert cache.sources.__wrapped__() != cache.sources.__wrapped__()
