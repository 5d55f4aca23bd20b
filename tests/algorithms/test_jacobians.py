"""Jacobians of frames and points to second order: against Pinocchio, complex step, and each other."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings

import featherjet as fj
from featherjet.algorithms.frames import jacobians
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.algorithms.scan import Scan
from featherjet.errors import InputError, UnknownName
from featherjet.jit.graph import Graph
from featherjet.model import configuration
from helpers import State, agree, each_agrees, every_kind, frame_of, models, random_state, to_pinocchio, with_state

VIEWPOINTS = {"local": pin.LOCAL, "world": pin.WORLD, "world_aligned": pin.LOCAL_WORLD_ALIGNED}
CONVENTIONS = ("pinocchio", "kindr", "drake")
H = 1e-30
TIGHT = 1e-13  # of what a quantity is made of: some five hundred roundings
POINT = np.array([0.1, -0.2, 0.3])
ROBOTS = {
    "quadruped": lambda: fj.load("quadruped"),
    "humanoid": lambda: fj.load("humanoid"),
    "arm": lambda: fj.load("arm"),
    "every kind": every_kind,
}
drawn = with_state(models(most=6), size=2)


@pytest.fixture(params=ROBOTS, scope="module")
def robot(request: pytest.FixtureRequest) -> fj.Robot:
    return ROBOTS[request.param]()


@pytest.fixture(params=VIEWPOINTS)
def viewpoint(request: pytest.FixtureRequest):
    return request.param


def times(M: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (M @ x[..., None])[..., 0]


def some_frames(robot: fj.Robot) -> list:
    """The outermost frames, one near the root, and a point on a body."""
    names = robot.frame_names
    return [names[-1], names[len(names) // 2], names[0], (robot.joint_names[-1], POINT)]


def stepped(robot: fj.Robot, q: np.ndarray, steps: np.ndarray, name, viewpoint: str) -> np.ndarray:
    """The derivative of J along tangent vectors `steps`, by complex step in the robot's own coordinates."""
    moved = configuration.integrate(robot.evaluator.space, q, 1j * H * steps)
    inputs = {"q": moved} | frame_of(robot, name)
    return robot.evaluator.reference("jacobian", inputs, viewpoint=viewpoint)[0].imag / H


def made_of(robot: fj.Robot, q: np.ndarray, name) -> np.ndarray:
    """What a Hessian's entries are made of, for each sample: products of two columns of J in ground coordinates.

    These are turned, moved by the frame's distance from the origin and, in coordinates of angles, scaled by their
    rates; terms may cancel, but their rounding stays. Rates have one velocity as a factor, drifts have two.
    """
    J = robot.frame_jacobian(q, name, viewpoint="world")
    return np.maximum(1.0, np.abs(J).max((-2, -1)) ** 2)


# Pinocchio


def test_equal_pinocchios(robot: fj.Robot, viewpoint) -> None:
    m = to_pinocchio(robot.model)
    data = m.createData()
    s = random_state(robot, 2)
    for q, v in zip(s.q, s.v, strict=True):
        pin.computeJointJacobiansTimeVariation(m, data, q, v)
        pin.updateFramePlacements(m, data)
        for name in some_frames(robot)[:3]:
            i = m.getFrameId(name)
            J = pin.getFrameJacobian(m, data, i, VIEWPOINTS[viewpoint])
            agree(robot.frame_jacobian(q, name, viewpoint=viewpoint), J, 1e-12)
            dJ = pin.getFrameJacobianTimeVariation(m, data, i, VIEWPOINTS[viewpoint])
            size, speed = float(made_of(robot, q, name)), float(np.linalg.norm(v))
            agree(robot.jacobian_derivative(q, v, name, viewpoint=viewpoint), dJ, 1e-12, "rate", size * speed)
            agree(robot.jacobian_drift(q, v, name, viewpoint=viewpoint), dJ @ v, 1e-12, "drift", size * speed**2)


def test_hessians_equal_pinocchios(robot: fj.Robot, viewpoint) -> None:
    """Of joints' frames, [row, column, direction] too; Pinocchio's tensor is column-major under a row-major label.

    In "local" Pinocchio 4.1 has entries among the dofs of one ball, planar or free joint that is not the first. A frame
    beyond such a joint sees its columns unmoved by it, as complex step below confirms: these blocks are left out here.
    """
    m = to_pinocchio(robot.model)
    data = m.createData()
    q = robot.random_configuration(0)
    pin.computeJointJacobians(m, data, q)
    pin.computeJointKinematicHessians(m, data)
    for joint in (robot.njoints - 1, robot.njoints // 2, 0):
        tensor = np.array(pin.getJointKinematicHessian(m, data, joint + 1, VIEWPOINTS[viewpoint]))
        theirs = tensor.ravel().reshape(tensor.shape, order="F")
        ours = robot.jacobian_hessian(q, robot.joint_names[joint], viewpoint=viewpoint)
        if viewpoint == "local":
            for _, _, _, iv in configuration.parts(robot.model):
                assert not ours[:, iv, iv].any()
                theirs[:, iv, iv] = 0.0
        agree(ours, theirs, 1e-11, robot.joint_names[joint], floor=1e-3)


# Complex step


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_equal_complex_step(robot: fj.Robot, viewpoint, convention: str) -> None:
    own = robot.with_convention(convention)
    s = random_state(own, 2)
    for name in some_frames(own):
        along = stepped(own, s.q[:, None], np.eye(own.nv), name, viewpoint)
        H_ = own.jacobian_hessian(s.q, name, viewpoint=viewpoint)
        size, speed = made_of(own, s.q, name), np.linalg.norm(s.v, axis=-1)
        each_agrees(H_, np.moveaxis(along, 1, -1), TIGHT, f"hessian of {name}", size)
        dJ = own.jacobian_derivative(s.q, s.v, name, viewpoint=viewpoint)
        each_agrees(dJ, stepped(own, s.q, s.v, name, viewpoint), TIGHT, f"rate of {name}", size * speed)
        each_agrees(dJ, times(H_, s.v[:, None]), TIGHT, "eq. 18", size * speed)
        drift = own.jacobian_drift(s.q, s.v, name, viewpoint=viewpoint)
        each_agrees(drift, times(dJ, s.v), TIGHT, "drift", size * speed**2)


@settings(max_examples=25)
@given(drawn)
def test_random_trees(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    name = (robot.frame_names[-1], POINT)
    size, speed = made_of(robot, s.q, name), np.linalg.norm(s.v, axis=-1)
    for viewpoint in VIEWPOINTS:
        along = stepped(robot, s.q[:, None], np.eye(robot.nv), name, viewpoint)
        H_ = robot.jacobian_hessian(s.q, name, viewpoint=viewpoint)  # type: ignore[arg-type]
        each_agrees(H_, np.moveaxis(along, 1, -1), TIGHT, viewpoint, size)
        dJ = robot.jacobian_derivative(s.q, s.v, name, viewpoint=viewpoint)  # type: ignore[arg-type]
        each_agrees(dJ, times(H_, s.v[:, None]), TIGHT, viewpoint, size * speed)
        drift = robot.jacobian_drift(s.q, s.v, name, viewpoint=viewpoint)  # type: ignore[arg-type]
        each_agrees(drift, times(dJ, s.v), TIGHT, viewpoint, size * speed**2)


# What they are


def test_a_jacobian_has_the_columns_of_the_joints_on_its_path(robot: fj.Robot) -> None:
    q = robot.random_configuration(0, 3)
    columns = np.swapaxes(robot.evaluator("joint_columns", q), -1, -2)
    for name in robot.frame_names:
        moves = robot.evaluator.tree.moves(robot.model.frame(name).joint)
        agree(robot.frame_jacobian(q, name, viewpoint="world"), columns * moves, 1e-13)


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_one_code_serves_all_frames_even_in_one_batch(backend: str, viewpoint) -> None:
    robot = fj.Robot(every_kind().model, backend=backend)
    q, v = robot.random_configuration(0), np.linspace(-1, 1, robot.nv)
    names = robot.frame_names
    batch = np.stack([frame_of(robot, name)["frame"] for name in names])
    J = robot.evaluator("jacobian", q, batch, viewpoint=viewpoint)
    moves = robot.evaluator("frame_velocity", q, v, batch, viewpoint=viewpoint)
    places = robot.evaluator("frame_placement", q, batch)
    for name, J_, move, T in zip(names, J, moves, places, strict=True):
        agree(robot.frame_jacobian(q, name, viewpoint=viewpoint), J_, 1e-15)
        agree(robot.frame_velocity(q, v, name, viewpoint=viewpoint), J_ @ v, 1e-14, floor=1.0)
        agree(move, J_ @ v, 1e-14, floor=1.0)
        f = robot.model.frame(name)
        body = np.eye(4) if f.joint < 0 else robot.forward_kinematics(q)[f.joint]
        agree(T, body @ f.placement, 1e-14)
        agree(robot.frame_placement(q, name), T, 1e-15)
    assert len(robot.evaluator.ready.kernels) <= 4, "a frame is no reason to compile"


def test_frames_of_large_robots(viewpoint) -> None:
    """Above a number of joints robots share code: the same numbers as the reference's."""
    model = fj.models.random_tree(90, seed=4)
    robot, reference = fj.Robot(model, backend="compiled"), fj.Robot(model, backend="numpy")
    assert not robot.evaluator.kernels.choice(QUANTITIES["jacobian"]).unrolls
    q, v = robot.random_configuration(0, 2), np.ones((2, robot.nv))
    for name in (robot.frame_names[0], robot.frame_names[-1], (robot.frame_names[40], POINT)):
        for call, given_ in (("frame_jacobian", (q,)), ("frame_velocity", (q, v))):
            found = getattr(robot, call)(*given_, name, viewpoint=viewpoint)
            agree(found, getattr(reference, call)(*given_, name, viewpoint=viewpoint), 1e-12, call, floor=1.0)
        agree(robot.frame_placement(q, name), reference.frame_placement(q, name), 1e-12)
    single = robot.frame_jacobian(q.astype(np.float32), robot.frame_names[-1], viewpoint=viewpoint)
    assert single.dtype == np.float32


def test_a_point_moves_as_its_placement_says(robot: fj.Robot) -> None:
    """J_P of a point is the derivative of its position, and (name, 0) is the frame itself."""
    q = robot.random_configuration(0)
    name = robot.joint_names[-1]
    J = robot.frame_jacobian(q, (name, POINT), viewpoint="world_aligned")
    moved = configuration.integrate(robot.model, q, 1j * H * np.eye(robot.nv))
    T = robot.evaluator.reference("forward_kinematics", {"q": moved})[0][:, -1]
    p = (T @ np.append(POINT, 1.0))[:, :3]
    agree(J[:3], p.imag.T / H, 1e-12)
    agree(robot.frame_placement(q, (name, POINT))[:3, 3], p[0].real, 1e-13)
    np.testing.assert_array_equal(robot.frame_jacobian(q, (name, np.zeros(3))), robot.frame_jacobian(q, name))


def test_acceleration_of_a_frame(robot: fj.Robot, viewpoint) -> None:
    """d(J v)/dt = J a + drift, along a trajectory with velocity v and acceleration a."""
    s = random_state(robot, 2)
    name = robot.frame_names[-1]
    moved = configuration.integrate(robot.model, s.q, 1j * H * s.v)
    J = robot.evaluator.reference("jacobian", {"q": moved} | frame_of(robot, name), viewpoint=viewpoint)[0]
    rate = times(J, s.v + 1j * H * s.a).imag / H
    got = times(robot.frame_jacobian(s.q, name, viewpoint=viewpoint), s.a) + robot.jacobian_drift(
        s.q, s.v, name, viewpoint=viewpoint
    )
    agree(got, rate, 1e-12)


def test_frames_of_the_world_do_not_move() -> None:
    b = fj.ModelBuilder("x")
    b.add_joint("j", "free")
    b.add_body("j", 1.0, inertia=np.eye(3))
    b.add_frame("table", None)
    robot = fj.Robot(b.build())
    s = random_state(robot, 2)
    for own in (robot, robot.with_convention("drake")):
        q, v = fj.convert(robot, own, s.q, s.v)[:2]
        assert v is not None
        for viewpoint in VIEWPOINTS:
            hessian = own.jacobian_hessian(q, "table", viewpoint=viewpoint)  # type: ignore[arg-type]
            assert hessian.shape == (2, 6, 6, 6)
            assert not hessian.any()
            assert not own.jacobian_derivative(q, v, "table", viewpoint=viewpoint).any()  # type: ignore[arg-type]
            assert not own.jacobian_drift(q, v, "table", viewpoint=viewpoint).any()  # type: ignore[arg-type]


def test_batches_broadcast(viewpoint) -> None:
    robot = every_kind()
    s = random_state(robot, 4)
    name = robot.frame_names[-1]
    one, n = s.q[1], robot.nv
    dJ = robot.jacobian_derivative(s.q[:, None], s.v[:2], name, viewpoint=viewpoint)
    assert dJ.shape == (4, 2, 6, n)
    agree(dJ[1, 0], robot.jacobian_derivative(one, s.v[0], name, viewpoint=viewpoint), 1e-13)
    assert robot.jacobian_drift(one, s.v, name, viewpoint=viewpoint).shape == (4, 6)
    assert robot.jacobian_hessian(s.q.reshape(2, 2, -1), name, viewpoint=viewpoint).shape == (2, 2, 6, n, n)
    assert robot.jacobian_hessian(s.q[:0], name, viewpoint=viewpoint).shape == (0, 6, n, n)
    own = robot.with_convention("drake")
    q, u = fj.convert(robot, own, s.q, s.v)[:2]
    assert own.jacobian_derivative(q[:, None], u[:2], name, viewpoint=viewpoint).shape == (4, 2, 6, n)  # type: ignore[index]
    wide = own.jacobian_drift(q[:, None], u[:2], name, viewpoint=viewpoint)  # type: ignore[index]
    agree(wide[1, 0], own.jacobian_drift(q[1], u[0], name, viewpoint=viewpoint), 1e-13)  # type: ignore[index]


def test_mimicking_joints_count_with_their_leaders() -> None:
    b = fj.ModelBuilder("finger")
    for k, name in enumerate("abc"):
        at = np.eye(4)
        at[0, 3] = 0.1
        mimic = fj.model.parts.Mimic("a", 0.5, 0.1) if k == 1 else None
        b.add_joint(name, "revolute", "abc"[k - 1] if k else None, at, axis=(0, 1, k), mimic=mimic)
        b.add_body(name, 1.0, inertia=np.eye(3))
    robot = fj.Robot(b.build())
    q, v = np.array([0.3, 0.4]), np.array([1.0, -2.0])
    for viewpoint in VIEWPOINTS:
        along = stepped(robot, q, np.eye(2), "c", viewpoint)
        H_ = robot.jacobian_hessian(q, "c", viewpoint=viewpoint)  # type: ignore[arg-type]
        agree(H_, np.moveaxis(along, 0, -1), 1e-12)
        drift = robot.jacobian_drift(q, v, "c", viewpoint=viewpoint)  # type: ignore[arg-type]
        agree(drift, H_ @ v @ v, 1e-12)


def test_algorithms_can_be_traced(viewpoint) -> None:
    """On expressions instead of numbers: what they record computes the same."""
    robot = every_kind()
    s = random_state(robot, 1)
    (frame,) = frame_of(robot, robot.frame_names[-1]).values()
    graph = Graph()
    q, v = (
        np.array([graph.load((name, k)) for k in range(n)], object) for name, n in (("q", robot.nq), ("v", robot.nv))
    )
    scan = Scan(robot.evaluator.tree, (), object)
    traced = {
        "jacobian": jacobians.jacobian(scan, q, frame, viewpoint),
        "jacobian_derivative": jacobians.jacobian_derivative(scan, q, v, frame, viewpoint),
        "jacobian_drift": jacobians.jacobian_drift(scan, q, v, frame, viewpoint),
        "jacobian_hessian": jacobians.jacobian_hessian(scan, q, frame, viewpoint),
    }
    known = {"q": s.q[0], "v": s.v[0], "frame": frame}
    for name, array in traced.items():
        roots = [graph.lift(x).index for x in array.flat]
        got = np.array(graph.interpret(roots, lambda at: known[at[0]][at[1]])).reshape(array.shape)
        inputs = {i.name: known[i.name] for i in QUANTITIES[name].inputs}
        agree(got, robot.evaluator.reference(name, inputs, viewpoint=viewpoint)[0], 1e-13, name)


# What is refused


@pytest.mark.parametrize("call", ["jacobian_derivative", "jacobian_drift", "jacobian_hessian", "frame_jacobian"])
def test_bad_input(call: str) -> None:
    robot = fj.load("arm")
    q = robot.neutral()
    given = (q, q) if call in ("jacobian_derivative", "jacobian_drift") else (q,)
    ask = getattr(robot, call)
    last = robot.frame_names[-1]
    with pytest.raises(UnknownName, match="unknown frame 'no such'"):
        ask(*given, "no such")
    with pytest.raises(UnknownName, match="unknown frame 'no such'"):
        ask(*given, ("no such", POINT))
    with pytest.raises(UnknownName, match="viewpoint"):
        ask(*given, last, viewpoint="moon")
    with pytest.raises(InputError, match=r"point: expected shape \(\.\.\., 3\)"):
        ask(*given, (last, [1.0, 2.0]))
    with pytest.raises(InputError, match=r"one point \(3,\)"):
        ask(*given, (last, np.zeros((2, 3))))
    with pytest.raises(InputError, match="a name and a point"):
        ask(*given, (last, POINT, POINT))
    with pytest.raises(InputError, match="q: expected shape"):
        ask(*(q[1:] for _ in given), last)
