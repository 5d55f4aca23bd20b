"""Stages in CasADi: the values and derivatives of problems, in this process and in C that CasADi generates."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

import featherjet as fj
from compilers import needed, run
from featherjet.control import (
    CenterOfMass,
    Constraint,
    Control,
    Cost,
    FrictionCone,
    Impact,
    Momentum,
    Phase,
    Placement,
    Problem,
    State,
    Translation,
    Velocity,
)
from featherjet.errors import InputError
from helpers import agree

ca = pytest.importorskip("casadi", reason="needs the package casadi")
FEET = ("LF_foot", "RF_foot", "LH_foot", "RH_foot")


def reach(integrator: str = "euler") -> Problem:
    robot = fj.load("arm")
    along = Translation("tool", np.linspace((0.2, 0.4, 0.5), (0.4, 0.2, 0.6), 4))
    costs = [Cost(along, 10.0), Cost(State(), 0.1), Cost(Control(), 1e-2)]
    phase = Phase(4, 0.05, costs, constraints=[Constraint(Control(), upper=2.0)], integrator=integrator)
    return Problem(robot, np.full(14, 0.1), [phase], [Cost(State(), 3.0), Constraint(Translation("tool", (0, 0, 1)))])


def jump(integrator: str = "euler") -> Problem:
    """Stance with forces in their cones, flight and an impact."""
    robot = fj.load("quadruped")
    x0 = np.concatenate([robot.neutral(), np.zeros(robot.nv)])
    costs = [Cost(State(x0), 0.3), Cost(CenterOfMass((0.1, 0.2, 0.3)), 2.0), Cost(Control(), 1e-3)]
    feet = fj.Contacts(robot, [fj.PointContact(f) for f in FEET[::3]])
    cones = [Cost(FrictionCone(name, 0.7), 0.1) for name in feet.names]
    flying = [Cost(Placement(FEET[0], np.eye(4))), Cost(Velocity(FEET[1], np.zeros(6)), 0.2), Cost(Momentum())]
    phases = [
        Phase(2, 0.02, [*costs, *cones], contacts=feet, integrator=integrator),
        Phase(2, 0.03, [*costs, *flying], integrator=integrator),
        Impact(feet, costs[:2]),
    ]
    return Problem(robot, x0, phases, costs[:2])


PROBLEMS = {"reach": reach, "jump": jump}


def somewhere(p: Problem) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    xs = p.integrate(p.guess()[0], 0.3 * rng.normal(size=(p.T + 1, p.ndx)))
    return xs, rng.normal(size=(p.T, p.nu))


def jacobian(f, result: str):
    """CasADi's Jacobian of a result by x and u."""
    given = f.mx_in()
    named = dict(zip(f.name_in(), given, strict=True))
    out = f(*given)[f.name_out().index(result)]
    return ca.Function("J", given, [ca.jacobian(out, named["x"]), ca.jacobian(out, named.get("u", ca.MX(0, 1)))])


@pytest.mark.parametrize("integrator", ["euler", "rk2", "rk4"])
@pytest.mark.parametrize("make", PROBLEMS.values(), ids=PROBLEMS)
def test_stages_are_the_problem(make, integrator: str) -> None:
    """Values at every knot, and derivatives along every tangent."""
    from featherjet.casadi.horizons import entries

    p = make(integrator)
    xs, us = somewhere(p)
    values, d = p.values(xs, us), p.linearize(xs, us)
    moves = entries(p, xs)
    stages = fj.casadi.stages(p)
    assert [list(s.knots) for s in stages] == [[*range(s.start, s.stop)] for s in p.every]
    for s in stages:
        for k, numbers, weights in zip(s.knots, s.p, s.weights, strict=True):
            given = [xs[k], us[k], numbers] if k < p.T else [xs[k], numbers]
            got = {name: np.array(y).ravel() for name, y in zip(s.function.name_out(), s.function(*given), strict=True)}
            agree(got["cost"][0], values.cost[k], 1e-13)
            for name in ("equality", "inequality"):
                if got[name].size:
                    agree(got[name], getattr(values, name)[k, : got[name].size], 1e-13, floor=1.0)
            by_x, by_u = (np.array(b) for b in jacobian(s.function, "cost")(*given))
            agree(by_x[0] @ moves[k], d.Lx[k], 1e-11, floor=1.0)
            if make is reach:  # all costs are squares
                agree(0.5 * weights @ got["residuals"] ** 2, values.cost[k], 1e-13)
            if k < p.T:
                agree(got["next"], values.next[k], 1e-12, floor=1.0)
                agree(by_u[0], d.Lu[k], 1e-11, floor=1.0)
                by_x, by_u = (np.array(b) for b in jacobian(s.function, "next")(*given))
                into = entries(p, d.next[k])
                agree(by_x @ moves[k], into @ d.Fx[k], 1e-9, floor=1.0)
                agree(by_u, into @ d.Fu[k], 1e-9, floor=1.0)


@pytest.mark.parametrize("make, k", [(reach, 1), (jump, 2)])
def test_hessians_are_those_of_gradients(make, k: int) -> None:
    """Against central differences of the gradient, whose error is that of a step of 1e-5, squared."""
    p = make("rk2")
    stage = next(s for s in fj.casadi.stages(p) if k in s.knots)
    x, u, numbers = stage.function.mx_in()
    z, w = ca.vertcat(x, u), np.random.default_rng(6).normal(size=p.nx)
    after, cost, *_ = stage.function(x, u, numbers)
    hessian, gradient = ca.hessian(cost + ca.dot(w, after), z)
    second = ca.Function("second", [x, u, numbers], [gradient, hessian])
    xs, us = somewhere(p)
    at, data = np.concatenate([xs[k], us[k]]), stage.p[k - stage.knots.start]
    columns = []
    for e in 1e-5 * np.eye(len(at)):
        ends = [np.array(second(*np.split(at + s * e, [p.nx]), data)[0]).ravel() for s in (1.0, -1.0)]
        columns.append((ends[0] - ends[1]) / 2e-5)
    agree(np.array(second(xs[k], us[k], data)[1]), np.array(columns).T, 1e-7, floor=1.0)


def test_any_q_stands_for_that_of_norm_one() -> None:
    p = jump()
    xs, us = somewhere(p)
    for s in fj.casadi.stages(p):
        k, longer = s.knots.start, xs[s.knots.start].copy()
        longer[3:7] *= 1.3  # the quaternion of the free base
        rest = [us[k], s.p[0]] if k < p.T else [s.p[0]]
        for one, other in zip(s.function(xs[k], *rest), s.function(longer, *rest), strict=True):
            agree(np.array(other), np.array(one), 1e-12, floor=1.0)


def test_generated_code_is_linked_to_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way of acados, which has CasADi write C with integers of 32 bits for values, Jacobians and Hessians."""
    gcc = needed("gcc")
    p = reach("rk2")
    here, (stage, end) = fj.casadi.stages(p)[0], fj.casadi.stages(p, tmp_path, name="arm")
    assert stage.library == end.library == tmp_path / "libarm.so"
    x, u, numbers = stage.function.mx_in()
    after, cost, _, _, inequality = stage.function(x, u, numbers)
    z, weights = ca.vertcat(u, x), ca.MX.sym("weights", p.nx)
    adjoint = ca.jtimes(after, z, weights, True)
    results = [after, ca.jacobian(after, z), adjoint, ca.jacobian(adjoint, z), *ca.hessian(cost, z), inequality]
    model = ca.Function("model", [x, u, weights, numbers], results)
    monkeypatch.chdir(tmp_path)
    model.generate("model.c", {"mex": False, "casadi_int": "int", "casadi_real": "double", "with_header": False})
    run(gcc, "-shared", "-fPIC", "-Werror=implicit", "model.c", "-L.", "-larm", "-lm", "-o", tmp_path / "model.so")
    xs, us = somewhere(p)
    given = [xs[2], us[2], np.random.default_rng(7).normal(size=p.nx), stage.p[2]]
    found = called(tmp_path / "model.so", "model", given, [model.nnz_out(k) for k in range(model.n_out())])
    for k, (got, want) in enumerate(zip(found, model(*given), strict=True)):
        agree(got, np.array(want.nonzeros()), 1e-13, floor=1.0)
        assert np.abs(got).max() > 0, k
    agree(found[0], p.values(xs, us).next[2], 1e-13)
    agree(found[0], np.array(here.function(xs[2], us[2], here.p[2])[0]).ravel(), 1e-13)


def called(library: Path, name: str, given: list[np.ndarray], sizes: list[int]) -> list[np.ndarray]:
    """Call a function that CasADi has generated with integers of 32 bits."""
    loaded = ctypes.CDLL(str(library))
    needs = [ctypes.c_int() for _ in range(4)]
    assert loaded[f"{name}_work"](*(ctypes.byref(n) for n in needs)) == 0
    arguments, results, integers, numbers = (n.value for n in needs)
    out = [np.full(n, np.nan) for n in sizes]
    arg, res = (ctypes.c_void_p * arguments)(), (ctypes.c_void_p * results)()
    arg[: len(given)] = [np.ascontiguousarray(x).ctypes.data for x in given]
    res[: len(out)] = [x.ctypes.data for x in out]
    assert loaded[name](arg, res, (ctypes.c_int * integers)(), (ctypes.c_double * numbers)(), 0) == 0
    return out


def test_libraries_may_leave_second_derivatives_out(tmp_path: Path) -> None:
    """Contacts and impacts in a library, for Gauss-Newton."""
    needed("gcc")
    p = jump()
    xs, us = somewhere(p)
    for here, s in zip(fj.casadi.stages(p), fj.casadi.stages(p, tmp_path, hessian=False), strict=True):
        k = s.knots.start
        given = [xs[k], us[k], s.p[0]] if k < p.T else [xs[k], s.p[0]]
        for name in s.function.name_out():
            for got, want in zip(
                jacobian(s.function, name)(*given), jacobian(here.function, name)(*given), strict=True
            ):
                agree(np.array(got), np.array(want), 1e-12, floor=1.0)
    assert "adj1" not in (tmp_path / "stage_casadi.c").read_text()


def test_mistakes_are_named(tmp_path: Path) -> None:
    p = reach()
    with pytest.raises(InputError, match="a batch"):
        fj.casadi.stages(Problem(fj.load("arm"), np.zeros((2, 14)), [Phase(1, 0.1, [Cost(Control())])]))
    with pytest.raises(InputError, match="expected a Problem"):
        fj.casadi.stages(p.evaluator)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="nowhere-cc"):
        fj.casadi.stages(p, tmp_path, compiler="nowhere-cc")
