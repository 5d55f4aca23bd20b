"""An optimal control problem in CasADi: lift an arm with least torque by IPOPT, with exact derivatives of the dynamics.

Needs CasADi: pip install 'featherjet[casadi]'.
"""

import importlib.util

import numpy as np

import featherjet as fj


def main() -> None:
    import casadi as ca

    robot = fj.load("arm")
    n, knots, duration = robot.nv, 30, 1.0
    h = duration / knots

    # One CasADi function for the whole horizon: matrices with a column for each knot.
    dynamics = fj.casadi.function(robot, "inverse_dynamics", horizon=knots)
    Q, V, A, U = (ca.MX.sym(name, n, knots) for name in ("q", "v", "a", "tau"))
    start, end = np.zeros(n), np.linspace(0.8, -0.6, n)

    constraints = ca.veccat(
        dynamics(Q, V, A) - U,
        V[:, 1:] - V[:, :-1] - h * A[:, :-1],
        Q[:, 1:] - Q[:, :-1] - h * V[:, 1:],
        Q[:, 0] - start, Q[:, -1] - end, V[:, 0], V[:, -1],
    )  # fmt: skip
    problem = {"x": ca.veccat(Q, V, A, U), "f": h * ca.sumsqr(U), "g": constraints}
    solver = ca.nlpsol("solver", "ipopt", problem, {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes"})
    guess = np.concatenate([np.linspace(start, end, knots).ravel(), np.zeros(3 * n * knots)])
    found = solver(x0=guess, lbg=0, ubg=0)

    stats = solver.stats()
    q, v, a, tau = np.array(found["x"]).reshape(4, knots, n)
    print(f"{stats['return_status']} after {stats['iter_count']} iterations")
    print(f"cost {float(found['f']):.2f} (Nm)^2 s, largest torque {np.abs(tau).max():.1f} Nm")
    print(f"the motion obeys the robot's dynamics to {np.abs(robot.inverse_dynamics(q, v, a) - tau).max():.0e} Nm")
    assert stats["success"]


if importlib.util.find_spec("casadi"):
    main()
else:
    print("this example needs CasADi: pip install 'featherjet[casadi]'")
