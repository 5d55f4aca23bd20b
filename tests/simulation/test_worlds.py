"""Many worlds at once, the joints' own laws, and servos; compiled steps against the NumPy reference and MuJoCo."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import featherjet as fj
import gauss_seidel
from featherjet.algorithms.contacts import percussion
from featherjet.errors import InputError, ModelError
from featherjet.math.vec3 import Sym3, Vec3
from featherjet.simulation.engine import Compiled
from featherjet.simulation.laws import JointLaws
from featherjet.simulation.reference import Reference
from held_contacts import TREE
from helpers import agree

FEET = ("LF_foot", "LH_foot", "RF_foot", "RH_foot")


def pendulum(**settings: object) -> fj.Robot:
    """A mass of 2 kg on a rod of 0.5 m, about y."""
    b = fj.ModelBuilder("pendulum")
    b.add_joint("hinge", "revolute", axis=(0, 1, 0), **settings)  # type: ignore[arg-type]
    b.add_body("hinge", 2.0, com=(0, 0, -0.5), inertia=0.01 * np.eye(3))
    return fj.Robot(b.build(), backend="compiled")


INERTIA = 0.01 + 2.0 * 0.25


def landing(worlds: int) -> tuple[fj.Robot, fj.Ground, np.ndarray, np.ndarray]:
    """Quadrupeds a little above the ground, on their way down, each its own."""
    robot = fj.load("quadruped", backend="compiled")
    rng = np.random.default_rng(1)
    ground = fj.Ground(robot, [fj.Foot(f, radius=0.02) for f in FEET], friction=0.6)
    q = np.tile(robot.neutral(), (worlds, 1))
    q[:, 8::3], q[:, 9::3] = 0.6, -1.2
    q[:, 7:] += 0.1 * rng.normal(size=(worlds, 12))
    q[:, 2] -= ground.gap(robot, q).min(-1) - 1e-3
    v = 0.5 * rng.normal(size=(worlds, robot.nv))
    v[:, 2] = -1.0
    return robot, ground, q, v


# The engine


@pytest.mark.parametrize("stops", [(), (6, 8, 11, 17)])
def test_compiled_steps_are_those_of_the_reference(stops: tuple[int, ...]) -> None:
    robot, ground, q, v = landing(5)
    rng = np.random.default_rng(2)
    tau, soft = rng.normal(size=(5, robot.nv)), 0.01 * rng.uniform(size=robot.nv)
    table, away, start, h = ground.table(robot.evaluator, q), np.zeros(4), np.zeros(12), np.array([4e-3])
    ways = held = None
    if stops:
        ways = np.abs(rng.normal(size=(5, len(stops), 3))) * [1e-3, 1e-3, 0.5]
        held = np.zeros((5, len(stops), 2))
    engines = [kind(robot.evaluator, ground, stops) for kind in (Compiled, Reference)]
    ours, theirs = (e.step(q, v, tau, soft, table, away, start, h, ways, held) for e in engines)
    for a, b in zip(ours[:3], theirs[:3], strict=True):
        agree(a, b, 1e-9)
    assert np.abs(ours.P).max() > 0.1  # some land
    if stops:
        assert ours.held is not None
        assert theirs.held is not None
        agree(ours.held.sum(-1), theirs.held.sum(-1), 1e-8)
        assert np.abs(ours.held).max(0).min(-1).min() > 0  # friction and limits act at every stop
    one = engines[0].step(
        q[2], v[2], tau[2], soft, table, away, start, h, *(None if x is None else x[2] for x in (ways, held))
    )
    agree(one.v, ours.v[2], 1e-10)  # sweeps end when percussions change by less than 1e-12


@pytest.mark.parametrize(
    "robot", [fj.load("quadruped", backend="compiled"), fj.Robot(TREE, backend="compiled")], ids=str
)
def test_flights_are_those_of_the_reference(robot: fj.Robot) -> None:
    """Every root that is free keeps the momentum of its tree."""
    rng = np.random.default_rng(3)
    ground = fj.Ground(robot, [robot.model.joints[-1].name], terrain=fj.Plane(height=-1e3))
    q, v = robot.random_configuration(rng, size=4), rng.normal(size=(4, robot.nv))
    given = rng.normal(size=(4, robot.nv)), np.zeros(robot.nv), ground.table(robot.evaluator, q), np.zeros(1)
    ends = []
    for balanced in (False, True):
        engines = [kind(robot.evaluator, ground, (), balanced) for kind in (Compiled, Reference)]
        ours, theirs = (e.step(q, v, *given, np.zeros(3), np.array([5e-2]), None, None) for e in engines)
        for a, b in zip(ours[:3], theirs[:3], strict=True):
            agree(a, b, 1e-11, floor=1e-3)
        ends.append(ours.v)
    assert np.abs(ends[1] - ends[0])[:, :6].max() > 1e-6


def test_percussions_obey_the_law_by_their_own_residual() -> None:
    """Checked with the problem alone: the Delassus matrix from dense matrices, at the middle of the step."""
    robot, ground, q, v = landing(3)
    engine = Compiled(robot.evaluator, ground, ())
    table = ground.table(robot.evaluator, q)
    found = engine.impact("compression", q, v, table, np.zeros(4), np.zeros(12))
    for k in range(3):
        J = ground.footing(robot.evaluator, q[k], table).J
        G = J @ np.linalg.solve(robot.mass_matrix(q[k]), J.T)
        axes = J[:, :3] @ robot.frame_placement(q[k], "root")[:3, :3].T  # tangents and normals in the world
        P = np.einsum("nij,nj->ni", axes.reshape(4, 3, 3), found.P[k].reshape(4, 3)).ravel()
        agree(robot.mass_matrix(q[k]) @ (found.v[k] - v[k]), J.T @ P, 1e-9)
        assert gauss_seidel.residual(G, J @ v[k], ground.friction, P) < 1e-9 * np.abs(P).max()


def test_one_foot_settles_where_the_laws_hold() -> None:
    """Drawn blocks with strong coupling and friction up to 2: open, sticking and sliding."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        A = rng.normal(size=(3, rng.integers(3, 7)))
        G, b, mu = A @ A.T, rng.normal(size=3), rng.uniform(0.2, 2.0)
        b[2] = -abs(b[2])
        of, P, change = percussion.block(Sym3.from_array(G)), np.zeros(3), 1.0
        while change > 1e-12 * max(1.0, np.abs(P).max()):
            found = percussion.struck(of, Vec3(*(G @ P + b)), mu, Vec3(*P))
            new = np.array([found.x, found.y, found.z])
            change, P = float(np.abs(new - P).max()), new
        assert gauss_seidel.residual(G, b, np.array([mu]), P) < 1e-9 * max(1.0, np.abs(P).max())


# Worlds


def test_many_worlds_move_as_each_alone() -> None:
    robot, ground, q, v = landing(6)
    servo = fj.Servo(robot, kp=200.0, kd=5.0, target=q)
    together = robot.simulate(q, v, servo, ground, dt=2e-3, duration=0.1)
    assert together.q.shape == (6, 51, robot.nq)
    assert together.forces.shape == (6, 51, 12)
    for k in (0, 5):
        alone = robot.simulate(
            q[k], v[k], fj.Servo(robot, kp=200.0, kd=5.0, target=q[k]), ground, dt=2e-3, duration=0.1
        )
        agree(together.q[k], alone.q, 1e-8)
        agree(together.forces[k], alone.forces, 1e-6)
    rows = robot.simulate(q.reshape(2, 3, -1), v.reshape(2, 3, -1), None, ground, dt=2e-3, duration=0.02)
    assert rows.q.shape == (2, 3, 11, robot.nq)


def test_bounces_of_many_worlds_are_those_of_each() -> None:
    b = fj.ModelBuilder("ball")
    b.add_joint("root", "free")
    b.add_body("root", 1.5, inertia=0.006 * np.eye(3))
    robot = fj.Robot(b.build(), backend="compiled")
    ground = fj.Ground(robot, [fj.Foot("root", radius=0.1)], restitution=0.8, friction=0.3)
    q, v = np.tile(robot.neutral(), (4, 1)), np.zeros((4, 6))
    q[:, 2], v[:, 0] = 0.1 + np.array([0.1, 0.2, 0.3, 0.4]), 1.0
    together = robot.simulate(q, v, contacts=ground, dt=4e-3, duration=0.6)
    for k in range(4):
        alone = robot.simulate(q[k], v[k], contacts=ground, dt=4e-3, duration=0.6)
        agree(together.q[k], alone.q, 1e-9)


# The joints' own laws


def test_damping_and_springs_act_exactly_to_the_methods_order() -> None:
    """A damped oscillator without gravity: x = e^(-c t) (cos w t + c/w sin w t)."""
    k, d = 40.0, 0.8
    robot = pendulum(damping=d, stiffness=k, spring=0.2).with_gravity((0, 0, 0))
    c = d / (2 * INERTIA)
    w = np.sqrt(k / INERTIA - c**2)

    def error(method: str, dt: float) -> float:
        motion = robot.simulate([0.7], [0.0], dt=dt, duration=1.0, method=method)
        t = motion.t
        true = 0.2 + 0.5 * np.exp(-c * t) * (np.cos(w * t) + c / w * np.sin(w * t))
        return float(np.abs(motion.q[:, 0] - true).max())

    assert error("rk4", 4e-3) < 1e-7
    assert error("time-stepping", 2e-3) < 0.6 * error("time-stepping", 4e-3) < 0.05
    stiff = pendulum(damping=1e5, stiffness=1e6)
    motion = stiff.simulate([0.5], [0.0], dt=0.01, duration=0.2)
    assert np.abs(motion.q).max() <= 0.5  # stable, however stiff


def test_dry_friction_stops_a_joint_and_holds_it() -> None:
    """With friction f about a joint of inertia I: it turns w^2 I / (2 f), and then rests against smaller torques."""
    robot = pendulum(friction=0.3).with_gravity((0, 0, 0))
    motion = robot.simulate([0.0], [1.0], dt=2e-3, duration=2.5)
    assert abs(motion.q[-1, 0] - INERTIA / (2 * 0.3)) < 2e-3
    assert abs(motion.v[-1, 0]) < 1e-12
    held = robot.simulate([0.0], [0.0], np.array([0.29]), dt=2e-3, duration=0.5)
    assert np.abs(held.q).max() < 1e-12
    pushed = robot.simulate([0.0], [0.0], np.array([0.4]), dt=2e-3, duration=0.5)
    agree(pushed.v[-1, 0], 0.1 / INERTIA * 0.5, 1e-6)


@pytest.mark.parametrize("method", [None, "semi-implicit", "time-stepping"])
def test_joints_stop_at_their_limits(method: str | None) -> None:
    robot = pendulum(lower=-0.5, upper=0.8)
    motion = robot.simulate([0.7], [2.0], dt=2e-3, duration=1.0, method=method)
    assert motion.q.max() < 0.8 + 1e-9
    assert motion.q.min() > -0.5 - 1e-9
    free = robot.simulate([0.7], [2.0], dt=2e-3, duration=1.0, method=method, passive=False)
    assert free.q.max() > 0.82
    pressed = robot.simulate([0.79], [0.0], np.array([30.0]), dt=2e-3, duration=0.2)
    agree(pressed.q[-1, 0], 0.8, 1e-9)


def test_effort_limits_bound_torques() -> None:
    robot = pendulum(effort_limit=0.5).with_gravity((0, 0, 0))
    motion = robot.simulate([0.0], [0.0], np.array([3.0]), dt=2e-3, duration=0.2)
    agree(motion.tau, np.full((101, 1), 0.5), 1e-12)
    agree(motion.v[-1, 0], 0.5 / INERTIA * 0.2, 1e-6)


def test_laws_agree_with_mujoco() -> None:
    """Damping, spring and dry friction of an MJCF file; limits are soft in MuJoCo, so they are left out."""
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><option timestep="0.0005" integrator="implicit"><flag contact="disable"/></option><worldbody>
      <body><joint name="a" axis="0 1 0" damping="0.3" stiffness="5" springref="20"/>
        <inertial pos="0 0 -0.4" mass="1" diaginertia=".02 .02 .01"/>
        <body pos="0 0 -0.8"><joint name="b" axis="0 1 0" damping="0.1"/>
          <inertial pos="0 0 -0.2" mass=".5" diaginertia=".01 .01 .005"/></body></body></worldbody></mujoco>"""
    theirs = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(theirs)
    data.qpos[:], data.qvel[:] = (0.5, -0.3), (1.0, 0.5)
    robot = fj.Robot(fj.load_mjcf(text) if hasattr(fj, "load_mjcf") else _loaded(text), backend="compiled")
    for _ in range(1000):
        mujoco.mj_step(theirs, data)
    motion = robot.simulate([0.5, -0.3], [1.0, 0.5], dt=0.0005, duration=0.5)
    agree(motion.q[-1], data.qpos, 2e-3)


def _loaded(text: str) -> fj.Model:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "two.xml"
        path.write_text(text)
        return fj.load(path).model


def test_a_spring_needs_one_coordinate() -> None:
    b = fj.ModelBuilder("x")
    b.add_joint("ball", "spherical", stiffness=1.0)
    with pytest.raises(ModelError, match=r"joint 'ball': only joints with one coordinate can have a spring"):
        b.build()


def test_laws_of_a_robot_are_off_if_it_is_ideal() -> None:
    laws = JointLaws(pendulum(damping=1.0, friction=1.0, lower=-1, upper=1).model, passive=False)
    assert laws.free
    assert not laws.stops


# Servos


def test_servos_reach_their_goals_at_any_gain() -> None:
    robot = fj.load("arm", backend="compiled")
    goal = np.array([0.3, 0.5, -0.2, 1.2, 0.4, 0.6, 0.1])
    servo = fj.Servo(robot, kp=1e6, kd=1e4, target=goal, feedforward=robot.gravity(goal))
    motion = robot.simulate(goal + 0.05, np.zeros(7), servo, dt=5e-3, duration=1.0, passive=False)
    agree(motion.q[-1], goal, 1e-4)
    spin = fj.Servo(robot, kd=50.0, velocity=lambda t: np.array([0.5, 0, 0, 0, 0, 0, 0]))
    motion = robot.simulate(goal, np.zeros(7), spin, dt=5e-3, duration=1.0, passive=False)
    assert abs(motion.v[-1, 0] - 0.5) < 0.2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kp": 1.0}, "kp needs a target"),
        ({"kd": -1.0}, "kd: must not be negative"),
        ({"kd": np.ones(3)}, "nv = 7"),
    ],
)
def test_bad_servos(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fj.Servo(fj.load("arm"), **settings)


def test_worlds_are_indexed_saved_and_told(tmp_path: Path) -> None:
    robot, ground, q, v = landing(3)
    motion = robot.simulate(q, v, None, ground, dt=2e-3, duration=0.01)
    assert motion.worlds == (3,)
    assert "3 x 6 states" in repr(motion)
    assert motion[1].worlds == ()
    assert motion[1:].worlds == (2,)
    agree(motion[2].q, motion.q[2], 0)
    assert motion.split()["LF_foot"].shape == (3, 6, 3)
    back = fj.Trajectory.load(motion.save(tmp_path / "worlds.npz"))
    assert np.array_equal(back.q, motion.q)
    assert np.array_equal(back.forces, motion.forces)
    for call in (lambda: motion.plot(tmp_path / "x.png"), lambda: motion[0][0], lambda: motion[0, 0]):
        with pytest.raises(InputError, match="trajectory"):
            call()


# Worlds by hand


def test_a_world_moves_as_simulate_does() -> None:
    robot, ground, q, v = landing(2)
    tau = np.zeros(robot.nv)
    tau[6:] = 5.0
    motion = robot.simulate(q[0], v[0], tau, ground, dt=2e-3, duration=0.1, method="time-stepping")
    world = fj.World(robot, q[0], v[0], ground, dt=2e-3)
    world.tau[:] = tau
    for k in range(50):
        agree(world.forces, motion.forces[k - 1], 1e-9) if k else None
        world.step()
        agree(world.q, motion.q[k + 1], 1e-10)
    assert abs(world.t - 0.1) < 1e-12
    both = fj.World(robot, q, v, ground, dt=2e-3)
    both.tau[:] = tau
    both.step(50)
    agree(both.q[0], world.q, 1e-9)
    assert "2" in repr(both)


def test_a_world_knows_limits_and_says_what_is_wrong() -> None:
    robot = pendulum(lower=-0.5, upper=0.8, damping=0.1, effort_limit=40.0)
    world = fj.World(robot, [0.7], [2.0], dt=2e-3)
    highest = 0.0
    for _ in range(200):
        world.step()
        highest = max(highest, float(world.q[0]))
    agree(highest, 0.8, 1e-9)
    world.tau[:] = 1e6  # more than its motor can do
    world.step(200)
    agree(world.q, [0.8], 1e-9)
    world.q[:] = np.nan
    with pytest.raises(InputError, match=r"world\.q: every entry must be finite"):
        world.step()
    for settings, message in (({"dt": -1.0}, "dt"), ({"contacts": 3}, "contacts"), ({"q": [1.0, 2.0]}, "nq = 1")):
        with pytest.raises(InputError, match=message):
            fj.World(robot, **{"q": [0.0], "v": [0.0], **settings})
