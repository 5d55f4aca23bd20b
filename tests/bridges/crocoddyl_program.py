"""What tests/bridges/test_crocoddyl.py looks at; a program for a Python that has Crocoddyl. Prints one line of JSON."""

from __future__ import annotations

import json
from typing import Any

import crocoddyl
import numpy as np
import pinocchio as pin

import featherjet as fj
from featherjet.control import (
    CenterOfMass,
    Constraint,
    Control,
    Cost,
    Custom,
    Impact,
    Phase,
    Problem,
    State,
    Translation,
    solve,
)

FEET = ("LF_foot", "RF_foot", "LH_foot", "RH_foot")
REGULARISATION = 1e-9


def reach(**options: Any) -> Problem:
    """Joints that turn about one axis: states are vectors."""
    there = Translation("tool", (0.4, 0.2, 0.6))
    along = Translation("tool", np.linspace((0.2, 0.4, 0.5), (0.4, 0.2, 0.6), 12))
    costs = [Cost(along, 10.0), Cost(State(), 0.1), Cost(Control(), 1e-2)]
    phases = [Phase(12, 0.05, costs, integrator="rk2")]
    return Problem(fj.load("arm"), np.full(14, 0.1), phases, [Cost(there, 100.0), Cost(State(), 1.0)], **options)


def step() -> Problem:
    """A free base, contacts that change, flight and an impact."""
    robot = fj.load("quadruped")
    x0 = np.concatenate([robot.neutral(), np.zeros(robot.nv)])
    four, two, hit = (fj.Contacts(robot, [fj.PointContact(f) for f in feet]) for feet in (FEET, FEET[::3], FEET[1:3]))
    costs = [Cost(State(x0)), Cost(Control(), 1e-3), Cost(CenterOfMass((0.05, 0.02, -0.05)), 10.0)]
    phases = [Phase(3, 0.02, costs, two), Phase(2, 0.02, costs), Impact(hit, costs[:1]), Phase(3, 0.02, costs, four)]
    return Problem(robot, x0, phases, [Cost(State(x0), 10.0)])


def limited(equalities: bool = False) -> Problem:
    """Equalities that controls can keep, then inequalities, at the end too; or such equalities alone."""
    robot = fj.load("arm")
    costs = [Cost(Translation("tool", (0.4, 0.2, 0.6)), 10.0), Cost(State(), 0.1), Cost(Control(), 1e-2)]
    still = Constraint(Custom(lambda k: [k.u[0] + 0.3 * k.v[0], k.u[2] - k.q[1] * k.u[1]]))
    slow = Constraint(State(), np.full(14, -np.inf), np.repeat([np.inf, 2.0], 7))
    phases = [Phase(5, 0.05, costs, constraints=[still]), Phase(4, 0.05, costs, constraints=[slow])]
    end = Cost(State(), 1.0)
    if equalities:
        return Problem(robot, np.full(14, 0.1), phases[:1], [end])
    return Problem(robot, np.full(14, 0.1), phases, [end, slow])


def intro(p: Problem) -> dict[str, Any]:
    """How Crocoddyl's solver for equalities ends, and how far it is from featherjet's."""
    s = fj.crocoddyl.problem(p)
    theirs, plain = crocoddyl.SolverIntro(s), crocoddyl.SolverFDDP(s)
    theirs.th_stop = 1e-12
    done = theirs.solve(*(list(x) for x in p.guess()), 200)
    own = solve(p, tolerance=1e-12, violation=1e-9)
    plain.solve(*(list(x) for x in p.guess()), 100)
    violations = [float(np.abs(p.values(np.array(x.xs), np.array(x.us)).equality).max()) for x in (theirs, plain)]
    return {
        "converged": [bool(own.converged), done],
        "cost": theirs.cost / float(own.cost) - 1.0,
        "us": off(theirs.us, own.us),
        "violations": violations,
    }


def both_solve(p: Problem, solver: Any) -> dict[str, Any]:
    """How far Crocoddyl's solution is from featherjet's, relative to its size, and the iterations of both."""
    own, theirs = solve(p, regularisation=REGULARISATION), solver(fj.crocoddyl.problem(p))
    theirs.th_stop = 1e-9
    done = theirs.solve(*(list(x) for x in p.guess()), 100, False, REGULARISATION)
    us, xs = np.array(theirs.us), np.array(theirs.xs)
    return {
        "converged": [bool(own.converged), done],
        "iterations": [int(own.iterations), theirs.iter],
        "cost": theirs.cost / float(own.cost) - 1.0,
        "xs": off(xs, own.xs),
        "us": off(us, own.us),
        "largest u": np.abs(us).max(),
    }


def off(x: Any, want: Any) -> float:
    """The largest difference, relative to the largest number."""
    x, want = np.asarray(x), np.asarray(want)
    return float(np.abs(x - want).max() / np.abs(want).max())


def numerical(p: Problem) -> dict[str, float]:
    """How far derivatives of the knots are from Crocoddyl's numerical ones, which know no featherjet but values."""
    s, rng, worst = fj.crocoddyl.problem(p), np.random.default_rng(0), {}
    xs = p.integrate(p.guess()[0], 0.2 * rng.normal(size=(p.T + 1, p.ndx)))
    us = p.guess()[1] + rng.normal(size=(p.T, p.nu))
    for t, model in enumerate((*s.runningModels, s.terminalModel)):
        given = (xs[t], us[t]) if t < p.T else (xs[t],)
        plain = crocoddyl.ActionModelNumDiff(model, False)
        found = []
        for m in (model, plain):
            data = m.createData()
            m.calc(data, *given)
            m.calcDiff(data, *given)
            found.append(data)
        for name in ("Fx", "Fu", "Lx", "Lu", "Hx", "Hu", "Gx", "Gu") if t < p.T else ("Lx", "Hx", "Gx"):
            x, want = (np.array(getattr(d, name)) for d in found)
            assert x.shape == want.shape, (name, x.shape, want.shape)
            if np.abs(want).max(initial=0.0) > 0.0 or np.abs(x).max(initial=0.0) > 0.0:
                worst[name] = max(worst.get(name, 0.0), float(np.abs(x - want).max() / (1.0 + np.abs(want).max())))
    return worst


def asked_out_of_order(p: Problem) -> dict[str, float]:
    """How far derivatives of knot 2 are off after another solver used the problem, and where x or u moves alone."""
    s, rng, t = fj.crocoddyl.problem(p), np.random.default_rng(1), 2
    xs, us = p.guess()
    s.calc(list(xs), list(us))
    s.calcDiff(list(xs), list(us))
    names, model, found = ("Fx", "Fu", "Lx", "Lu", "Lxx", "Luu"), s.runningModels[t], {}
    for what in ("nothing", "x", "u"):
        if what == "x":
            xs[t] = p.integrate(p.x0, 0.3 * rng.normal(size=p.ndx))
        elif what == "u":
            us[t] = rng.normal(size=p.nu)
        d = p.linearize(xs, us)
        want = {name: np.array(getattr(d, name)[t]) for name in names}
        p.linearize(p.integrate(xs, 0.5 * rng.normal(size=(p.T + 1, p.ndx))), us + 1.0)  # writes over its arrays
        data = model.createData()
        model.calcDiff(data, xs[t], us[t])
        found[what] = max(off(getattr(data, name), want[name]) for name in names)
    return found


def whole_horizons(p: Problem) -> list[int]:
    """Iterations of a solve, and how often the horizon was differentiated for them."""
    s, count = fj.crocoddyl.problem(p), []
    inside = s.runningModels[0].around.problem
    linearize = inside.linearize
    inside.linearize = lambda *given: count.append(1) or linearize(*given)
    solver = crocoddyl.SolverFDDP(s)
    solver.th_stop = 1e-9
    solver.solve(*(list(x) for x in p.guess()), 100, False, REGULARISATION)
    return [solver.iter, len(count)]


def manifold(p: Problem) -> dict[str, float]:
    """How far the state space is from Crocoddyl's own of a free base and twelve hinges."""
    model = pin.Model()
    parent = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
    for k in range(12):
        model.addJoint(parent, pin.JointModelRX(), pin.SE3.Identity(), f"hinge{k}")
    own, theirs = fj.crocoddyl.problem(p).runningModels[0].state, crocoddyl.StateMultibody(model)
    rng, part = np.random.default_rng(2), crocoddyl.Jcomponent
    dx, M = rng.normal(size=p.ndx), rng.normal(size=(p.ndx, 4))
    x0, x1 = (p.integrate(p.x0, rng.normal(size=p.ndx)) for _ in range(2))
    pairs = {
        "zero": (own.zero(), theirs.zero()),
        "diff": (own.diff(x0, x1), theirs.diff(x0, x1)),
        "integrate": tuple(theirs.diff(x0, s.integrate(x0, dx)) for s in (own, theirs)),  # q and -q are the same
        "Jdiff": (own.Jdiff(x0, x1), theirs.Jdiff(x0, x1)),
        "Jdiff first": (own.Jdiff(x0, x1, part.first), theirs.Jdiff(x0, x1, part.first)),
        "Jintegrate": (own.Jintegrate(x0, dx), theirs.Jintegrate(x0, dx)),
        "Jintegrate second": (own.Jintegrate(x0, dx, part.second), theirs.Jintegrate(x0, dx, part.second)),
    }
    for which in (part.first, part.second):
        want = M.copy(order="F")
        theirs.JintegrateTransport(x0, dx, want, which)  # in place
        pairs[f"transport {which}"] = own.JintegrateTransport(x0, dx, M, which), want
    return {name: off(*pair) for name, pair in pairs.items()} | {"rand": abs(np.linalg.norm(own.rand()[3:7]) - 1.0)}


def refused() -> list[str]:
    robot, costs = fj.load("arm"), [Cost(Control())]
    said = []
    for wrong in (
        robot,
        Problem(robot, np.zeros((2, 14)), [Phase(1, 0.1, costs)]),
    ):
        try:
            fj.crocoddyl.problem(wrong)  # type: ignore[arg-type]
        except fj.errors.InputError as error:
            said.append(str(error))
    return said


def bounds(p: Problem) -> list[Any]:
    """Of each knot: how many equalities and inequalities it has, and whether they are p's at a motion."""
    s, (xs, us) = fj.crocoddyl.problem(p), p.guess()
    values, found = p.values(xs, us), []
    for t, model in enumerate((*s.runningModels, s.terminalModel)):
        data = model.createData()
        model.calc(data, *((xs[t], us[t]) if t < p.T else (xs[t],)))
        h, g = np.array(data.h), np.array(data.g)
        same = (h == values.equality[t, : len(h)]).all() and (g == values.inequality[t, : len(g)]).all()
        found.append([len(h), len(g), bool(same), bool((model.g_ub == 0).all() and np.isneginf(model.g_lb).all())])
    return found


def diverging(p: Problem) -> bool:
    """Whether a step far away gives a cost that is not finite, and no error."""
    s = fj.crocoddyl.problem(p)
    data = s.runningModels[0].createData()
    s.runningModels[0].calc(data, 1e200 * np.ones(p.nx), np.ones(p.nu))
    return not np.isfinite(data.cost)


def main() -> None:
    arm, legs = reach(), step()
    boxed = reach(limits=True)
    boxed.u_lower, boxed.u_upper = np.full((boxed.T, 7), -8.0), np.full((boxed.T, 7), 8.0)
    held = np.array(fj.crocoddyl.problem(legs).quasiStatic([legs.x0] * legs.T))
    print(
        json.dumps(
            {
                "reach": both_solve(arm, crocoddyl.SolverFDDP),
                "step": both_solve(legs, crocoddyl.SolverFDDP),
                "boxed": both_solve(boxed, crocoddyl.SolverBoxFDDP),
                "numerical reach": numerical(arm),
                "numerical step": numerical(legs),
                "numerical limited": numerical(limited()),
                "bounds": bounds(limited()),
                "intro": intro(limited(equalities=True)),
                "out of order": asked_out_of_order(legs),
                "whole horizons": whole_horizons(legs),
                "manifold": manifold(legs),
                "held": off(held, legs.guess()[1]),
                "refused": refused(),
                "diverging": diverging(arm),
            }
        )
    )


if __name__ == "__main__":
    main()
