"""Bad input to a transition gets a clear error, before any solving."""

from __future__ import annotations

import numpy as np
import pytest

import featherjet as fj
from featherjet.errors import FeatherjetError, InputError, MissingExtra, UnknownName
from featherjet.transitions import plan

REST = np.zeros(7)
START = np.array([0, 0.5, 0, -1.2, 0, 0.8, 0])
END = np.array([0.9, 0.9, 0.3, -0.7, 0.2, 0.1, 0.4])


@pytest.fixture(scope="module")
def arm() -> fj.Robot:
    return fj.load("arm", backend="numpy")


@pytest.fixture(scope="module")
def quadruped() -> fj.Robot:
    return fj.load("quadruped", backend="numpy")


@pytest.fixture(autouse=True)
def no_solving(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("it solved before it looked")

    monkeypatch.setattr(plan, "solve", refuse)


def test_the_guard_guards(arm):
    with pytest.raises(AssertionError, match="before it looked"):
        fj.transition(arm, (START, REST), (END, REST), 1.0)


@pytest.mark.parametrize(
    "changes, says",
    [
        (dict(start=(START[:6], REST)), r"start: q: expected shape .*7"),
        (dict(end=(END, REST[:3])), r"end: v: expected shape .*7"),
        (dict(start=START), r"start: expected a pair \(q, v\) or a Clip"),
        (dict(start=(np.array([START, START]), REST)), "for a sampled motion, give a Clip"),
        (dict(start=(START * np.nan, REST)), "must be finite"),
        (dict(duration=0.0), "duration: expected a positive number, got 0"),
        (dict(duration=-1), "duration: expected a positive number"),
        (dict(duration=np.inf), "duration: expected a positive number"),
        (dict(duration="1"), "duration: expected a positive number"),
        (dict(degree=2), "degree: expected a whole number, at least 3"),
        (dict(degree=5.0), "degree: expected a whole number"),
        (dict(degree=40), "degree: expected at most 12, got 40"),
        (dict(duration=1e-300), "duration: expected seconds, from 1e-06"),
        (dict(intervals=0), "intervals: expected a whole number, at least 1"),
        (dict(degree=3, intervals=1), "at least 2, so that something is left to choose"),
        (dict(points=0), "points: expected a whole number, at least 1"),
        (dict(solver="newton"), "unknown solver 'newton'"),
        (dict(tolerance=0), "tolerance: expected a positive number"),
        (dict(max_iterations=0), "max_iterations: expected a whole number"),
        (dict(weights=-np.ones(7)), "weights: must not be negative"),
        (dict(weights=np.ones(6)), r"weights: expected one number or nv = 7"),
        (dict(weights={"joint9": 1.0}), "unknown joint 'joint9'"),
        (dict(weights={"joint1": -1.0}), "weights: must not be negative; entry 0 is -1"),
        (dict(weights={"joint1": [1.0, 2.0]}), r"weights of joint 'joint1': expected one number or 1"),
        (dict(weights=0.0), "all are zero"),
        (dict(weights=np.nan), "must be finite"),
        (dict(root_forces="wheels"), "unknown root_forces 'wheels'"),
        (dict(root_forces="unactuated"), "has no floating base"),
        (dict(supports=("hand",)), "unknown frame 'hand'"),
        (dict(supports=(3,)), "supports: expected names of frames"),
        (dict(supports=("tool",)), "support 'tool': it is in different places"),
        (dict(supports=(fj.PointContact("tool", other="link2"),)), "the world holds it"),
        (dict(targets=[fj.Target("hand", 0.5, position=(0, 0, 1))]), "unknown frame 'hand'"),
        (dict(targets=[fj.Target("tool", 0.5)]), "give either a position or a placement"),
        (dict(targets=[fj.Target("tool", 0.5, position=(0, 1))]), "position: expected"),
        (dict(targets=[fj.Target("tool", 1.5, position=(0, 0, 1))]), "from 0 to 1 s; got 1.5"),
        (dict(targets=[fj.Target("tool", (0.7, 0.2), position=(0, 0, 1))]), "two in order"),
        (dict(targets=[fj.Target("tool", "noon", position=(0, 0, 1))]), "expected a moment"),  # type: ignore[arg-type]
        (dict(targets=[fj.Target("tool", 0.5, placement=2 * np.eye(4))]), "not a rigid transform"),
        (dict(targets=[fj.Target("tool", 0.0, position=(0, 0, 1))]), "at the start the frame is"),
        (dict(targets=[fj.Target("tool", (0.5, 1.0), position=(0, 0, 1))]), "at the end the frame is"),
        (dict(targets=[fj.Target("tool", 0.5, position=(0, 0, 9))]), r"out of reach: it is 8\.66 m from joint"),
        (dict(targets=["tool"]), "expected Target objects"),
        (dict(limits=("power",)), "unknown limit 'power'"),
        (dict(limits={"velocity": -1.0}), "limits: velocity: must not be negative"),
        (dict(limits={"velocity": np.ones(3)}), "expected one number or nv = 7"),
        (dict(limits={"position": 1.0}), r"expected a pair \(lower, upper\)"),
        (dict(limits={"position": (1.0, -1.0)}), "lower limit 1 above upper -1"),
        (dict(limits={"position": (-1.0, 1.0)}), r"start: joint 'joint4': position -1.2 is outside its limits -1 to 1"),
        (dict(limits="velocity", end=(END, 5 * np.ones(7))), "end: joint 'joint1': velocity 5 is outside"),
        (dict(limits={"velocity": 0.5}), r"limits: joint 'joint1' has 0.9 rad or m to go, which takes at least 1.8 s"),
        (dict(solver="lbfgs", limits="velocity"), "'lbfgs' takes no conditions"),
        (dict(solver="bfgs", targets=[fj.Target("tool", 0.5, position=(0, 0, 1))]), "'bfgs' takes no conditions"),
        (dict(initial=3), "initial: expected a transition of the same robot"),
        (dict(end=fj.Clip(np.array([END]), 0.1)), "at least two samples"),
        (dict(end=fj.Clip(np.array([END, END]), 0.0)), "end: dt: expected a positive number"),
        (dict(end=fj.Clip(np.array([END, END]), 0.1, np.zeros((3, 7)))), "end: v: expected shape"),
    ],
)  # fmt: skip
def test_it_is_refused(arm, changes, says, monkeypatch):
    if "takes no conditions" in says:  # that is the solver's to say, still before it begins
        from featherjet.transitions import solve

        monkeypatch.setattr(plan, "solve", solve.solve)
        monkeypatch.setattr(solve, "Search", None)
    given = dict(start=(START, REST), end=(END, REST), duration=1.0) | changes
    with pytest.raises(FeatherjetError, match=says):
        fj.transition(arm, **given)


def test_robots_that_are_not(arm):
    with pytest.raises(InputError, match="transition takes a Robot, got Model"):
        fj.transition(arm.model, (START, REST), (END, REST), 1.0)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="its convention is 'mujoco'"):
        fj.transition(arm.with_convention("mujoco"), (START, REST), (END, REST), 1.0)


def test_states_of_a_floating_base(quadruped):
    q, rest = quadruped.neutral(), np.zeros(18)
    spoiled = q.copy()
    spoiled[3:7] = 0.4
    with pytest.raises(InputError, match="start: q: joint 'root': its quaternion"):
        fj.transition(quadruped, (spoiled, rest), (q, rest), 1.0)
    moving = rest.copy()
    moving[0] = 1.0
    with pytest.raises(InputError, match="support 'LF_foot': it moves at the end, at 1 m/s"):
        fj.transition(quadruped, (q, rest), (q, moving), 1.0, supports=[fj.PointContact("LF_foot")])
    feet = [fj.PointContact("LF_foot"), fj.PointContact("RH_foot")]
    with pytest.raises(InputError, match="LF_foot, RH_foot cannot carry an unactuated root"):
        fj.transition(quadruped, (q, rest), (q, rest), 1.0, supports=feet, root_forces="unactuated")
    with pytest.raises(InputError, match="support 'LF_foot' is given twice"):
        fj.transition(quadruped, (q, rest), (q, rest), 1.0, supports=["LF_foot", "LF_foot"])
    with pytest.raises(InputError, match="root_weight: expected a positive number"):
        fj.transition(quadruped, (q, rest), (q, rest), 1.0, root_forces="penalised", root_weight=0)
    for duration, misses in ((1.0, "9.81 m/s"), (1e-3, "0.00981 m/s")):
        with pytest.raises(InputError, match=f"flies freely and after {duration:g} s misses the end by {misses}"):
            fj.transition(quadruped, (q, rest), (q, rest), duration, root_forces="unactuated")
    floating = quadruped.with_gravity((0, 0, 0))
    with pytest.raises(InputError, match="misses the end by 1 m: name supports"):
        fj.transition(floating, (q, rest), (floating.integrate(q, np.eye(18)[1]), rest), 1.0, root_forces="unactuated")
    spin = np.concatenate([np.linalg.solve(floating.centroidal_map(q)[:, :6], [0, 0, 0, 0, 0.5, 0]), np.zeros(12)])
    with pytest.raises(InputError, match=r"misses the end by 0\.5 N m s of angular momentum"):
        fj.transition(floating, (q, rest), (q, spin), 1.0, root_forces="unactuated")
    weights = np.zeros(18)
    weights[:6] = 1.0
    with pytest.raises(InputError, match="all joints but the unactuated root have weight zero"):
        fj.transition(quadruped, (q, rest), (q, rest), 1.0, root_forces="unactuated", weights=weights)


@pytest.mark.parametrize("gravity, falls", [((0, 0, -9.81), False), ((0, -9.81, 0), True)])
def test_a_puck_falls_only_in_its_plane(gravity, falls):
    """A planar root is held across its plane, where gravity does nothing; along it, rest does not last."""
    b = fj.ModelBuilder("puck", gravity=gravity)
    b.add_joint("slide", "planar")
    b.add_body("slide", 1.0, inertia=0.1 * np.eye(3))
    b.add_joint("arm", "revolute", "slide")
    b.add_body("arm", 0.5, com=(0.3, 0, 0.1), inertia=0.01 * np.eye(3))
    robot = fj.Robot(b.build(), backend="numpy")
    state = robot.neutral(), np.zeros(4)
    error, says = (InputError, "flies freely") if falls else (AssertionError, "before it looked")
    with pytest.raises(error, match=says):
        fj.transition(robot, state, state, 1.0, root_forces="unactuated")


def test_without_scipy(arm, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "scipy.optimize", None)
    with pytest.raises(MissingExtra, match=r"featherjet\[motion\]"):
        fj.transition(arm, (START, REST), (END, REST), 1.0)


def test_without_cyipopt(arm, monkeypatch):
    from featherjet.transitions import solve

    monkeypatch.setattr(plan, "solve", solve.solve)
    monkeypatch.setitem(__import__("sys").modules, "cyipopt", None)
    with pytest.raises(MissingExtra, match=r"featherjet\[ipopt\]"):
        fj.transition(arm, (START, REST), (END, REST), 1.0, solver="ipopt", intervals=1)


def test_times_outside(arm, monkeypatch):
    from featherjet.transitions import solve

    monkeypatch.setattr(plan, "solve", solve.solve)
    result = fj.transition(arm, (START, REST), (END, REST), 1.0, intervals=1, max_iterations=1)
    with pytest.raises(InputError, match="expected times from 0 to 1 s"):
        result.q(1.1)
    with pytest.raises(InputError, match="expected times from 0 to 1 s"):
        result.tau([-0.1, 0.5])
    with pytest.raises(InputError, match="no clip to take dt from"):
        result.joined()
    with pytest.raises(UnknownName, match="up axis"):
        result.to_bvh("x.bvh", up="x")
    with pytest.raises(InputError, match="fps"):
        result.to_bvh("x.bvh", fps=0)
    with pytest.raises(InputError, match="count"):
        result.to_csv("x.csv", count=1)
