"""Contact forces along a solution: those of the dynamics, in a trajectory that can be viewed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import featherjet as fj
from featherjet.control import Control, Cost, Impact, Phase, Problem, State, solve
from featherjet.simulation.playback import Playback

FEET = ("LF_foot", "LH_foot", "RF_foot", "RH_foot")


def test_forces_of_a_step_are_those_of_the_dynamics(tmp_path: Path) -> None:
    """Stand, lift a foot, strike, stand: forces by foot, zero in the air; the impact takes no time."""
    robot = fj.Robot(fj.load("quadruped").model, backend="compiled")
    x0 = np.concatenate([robot.neutral(), np.zeros(robot.nv)])

    def feet(*names: str) -> fj.Contacts:
        return fj.Contacts(robot, [fj.PointContact(f) for f in names], baumgarte=(0.0, 20.0))

    costs = [Cost(State(x0), 10.0), Cost(Control(), 1e-3)]
    stand, lift, strike = feet(*FEET), feet(*FEET[1:]), feet(FEET[0])
    phases = [Phase(3, 0.02, costs, stand), Phase(4, 0.02, costs, lift), Impact(strike, [Cost(State(x0), 1.0)])]
    problem = Problem(robot, x0, [*phases, Phase(2, 0.02, costs, stand)], [Cost(State(x0), 1.0)])
    found = solve(problem, iterations=3)
    motion = found.trajectory()
    assert motion.contacts == FEET
    np.testing.assert_allclose(motion.t, 0.02 * np.arange(10))
    assert len(motion) == problem.T
    np.testing.assert_array_equal(motion.q[7], found.xs[8, : robot.nq])  # after the impact
    for k, contacts in ((1, stand), (4, lift), (8, stand)):
        forces = robot.constrained_dynamics(motion.q[k], motion.v[k], motion.tau[k], contacts=contacts).forces
        for name, f in contacts.split(forces).items():
            np.testing.assert_allclose(motion.split()[name][k], f, atol=1e-8 * np.abs(forces).max())
    assert not motion.split()["LF_foot"][3:7].any()
    assert not motion.arrows[3:7, 0, 1].any()
    at = robot.frame_placement(motion.q[3:7], "LF_foot")[:, :3, 3]  # the foot's, also in the air
    np.testing.assert_allclose(motion.arrows[3:7, 0, 0], at, atol=1e-12)
    point = robot.frame_placement(motion.q[1], "RH_foot")[:3, 3]
    np.testing.assert_allclose(motion.arrows[1, 3, 0], point, atol=1e-12)
    again = Playback(fj.Trajectory.load(motion.save(tmp_path / "step.npz")))
    np.testing.assert_array_equal(again.arrows(motion.t[1]), motion.arrows[1])
