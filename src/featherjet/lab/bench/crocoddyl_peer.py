"""Crocoddyl's own benchmark problems, solved by its own C++; a script for a Python that has Crocoddyl.

Reads names of problems from stdin, one a line, and answers each with a line of JSON. It imports nothing of featherjet:
pip's Crocoddyl needs another Pinocchio than featherjet's tests, so it lives in an environment of its own:

    python -m venv peer && peer/bin/pip install crocoddyl==3.2.1 pin==4.0.0 libpinocchio==4.0.0 example-robot-data
"""

# pyright: reportAttributeAccessIssue=false
import json
import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"

import crocoddyl  # type: ignore[import-not-found]
import example_robot_data  # type: ignore[import-not-found]
import numpy as np
import pinocchio  # type: ignore[import-not-found]
from crocoddyl.utils.biped import SimpleBipedGaitProblem  # type: ignore[import-not-found]
from crocoddyl.utils.quadruped import SimpleQuadrupedalGaitProblem  # type: ignore[import-not-found]


def arm():
    """The example arm_manipulation."""
    model = example_robot_data.load("kinova").model
    state = crocoddyl.StateMultibody(model)
    goal = pinocchio.SE3(np.eye(3), np.array([0.6, 0.2, 0.5]))
    frame = model.getFrameId("j2s6s200_end_effector")
    reach = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelFramePlacement(state, frame, goal))
    running, terminal = crocoddyl.CostModelSum(state), crocoddyl.CostModelSum(state)
    running.addCost("reach", reach, 1)
    running.addCost("state", crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelState(state)), 1e-1)
    running.addCost("control", crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state)), 1e-1)
    terminal.addCost("reach", reach, 1e3)
    actuation = crocoddyl.ActuationModelFull(state)

    def knot(costs, dt):
        model = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs)
        return crocoddyl.IntegratedActionModelEuler(model, dt)

    x0 = np.concatenate([model.referenceConfigurations["arm_up"], np.zeros(model.nv)])
    return crocoddyl.ShootingProblem(x0, [knot(running, 1e-2)] * 100, knot(terminal, 0.0)), x0


def gait(make, *numbers):
    model = example_robot_data.load("hyq").model
    problem = SimpleQuadrupedalGaitProblem(model, "lf_foot", "rf_foot", "lh_foot", "rh_foot")
    return getattr(problem, f"create{make}Problem")(model.defaultState, *numbers), model.defaultState


def biped_walk():
    model = example_robot_data.load("talos_legs").model
    problem = SimpleBipedGaitProblem(model, "right_sole_link", "left_sole_link")
    return problem.createWalkingProblem(model.defaultState, 0.6, 0.1, 0.03, 35, 10), model.defaultState


PROBLEMS = {
    "arm": arm,
    "walk": lambda: gait("Walking", 0.25, 0.25, 1e-2, 25, 2),
    "trot": lambda: gait("Trotting", 0.15, 0.1, 1e-2, 25, 2),
    "pace": lambda: gait("Pacing", 0.15, 0.1, 1e-2, 25, 5),
    "bound": lambda: gait("Bounding", 0.15, 0.1, 1e-2, 25, 5),
    "jump": lambda: gait("Jumping", 0.15, np.array([0.0, 0.3, 0.0]), 1e-2, 10, 20),
    "biped walk": biped_walk,
}
REGULARISATION, TOLERANCE = 0.1, 1e-9


def main():
    made = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in made:
            problem, x0 = PROBLEMS[name]()
            problem.nthreads = 1
            solver = crocoddyl.SolverFDDP(problem)
            solver.th_stop = TOLERANCE
            made[name] = solver, [x0] * (problem.T + 1), problem.quasiStatic([x0] * problem.T)
        solver, xs, us = made[name]
        start = time.process_time()
        solver.solve(xs, us, 100, False, REGULARISATION)
        seconds = time.process_time() - start
        found = {"seconds": seconds, "iterations": solver.iter, "cost": solver.cost, "knots": solver.problem.T}
        print(json.dumps({**found, "version": crocoddyl.__version__}), flush=True)


if __name__ == "__main__":
    main()
