"""Mimicking joints: dynamics and derivatives are the independent robot's, reduced by v_tree = G v."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import featherjet as fj
from backends import CALLS, Pair, compare, kernel_of, spoiled
from featherjet import verify
from featherjet.errors import InputError, ModelError, SingularMassMatrix
from featherjet.jit.chain import Chain
from featherjet.model.parts import Mimic
from helpers import agree, each_agrees, random_state
from urdf_helpers import coupled_urdf


@pytest.fixture(scope="module", params=["fixed", "free"])
def robots(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[fj.Robot, fj.Robot]:
    """The coupled robot and the one whose joints are all independent."""
    path = Path(tmp_path_factory.mktemp("mimic")) / "coupled.urdf"
    path.write_text(coupled_urdf())
    return fj.load(path, root=request.param, mimic=True), fj.load(path, root=request.param)


def expand(coupled: fj.Robot, tree: fj.Robot, q: np.ndarray) -> np.ndarray:
    """The independent robot's q, joint by joint, from what the URDF says."""
    rule = {"a_follower": (-0.5, 0.2), "c_slide": (0.3, 0.0), "leader": (1.0, 0.0), "n_chained": (-1.0, 0.3)}
    leader = q[..., coupled.model.q_starts[coupled.model.joint_index("leader")]]
    out = np.zeros((*q.shape[:-1], tree.nq))
    for joint, start in zip(tree.model.joints, tree.model.q_starts, strict=True):
        if joint.name in rule:
            multiplier, offset = rule[joint.name]
            out[..., start] = multiplier * leader + offset
        else:
            own = coupled.model.q_starts[coupled.model.joint_index(joint.name)]
            out[..., start : start + joint.nq] = q[..., own : own + joint.nq]
    return out


def coupling(coupled: fj.Robot, tree: fj.Robot) -> np.ndarray:
    G = np.zeros((tree.nv, coupled.nv))
    multiplier = {"a_follower": -0.5, "c_slide": 0.3, "n_chained": -1.0}
    for joint, row in zip(tree.model.joints, tree.model.v_starts, strict=True):
        lead = "leader" if joint.name in multiplier else joint.name
        column = coupled.model.v_starts[coupled.model.joint_index(lead)]
        for k in range(joint.nv):
            G[row + k, column + k] = multiplier.get(joint.name, 1.0)
    return G


def test_sizes(robots) -> None:
    coupled, tree = robots
    assert (coupled.nq, coupled.nv) == (tree.nq - 3, tree.nv - 3)
    assert coupled.njoints == tree.njoints
    assert coupled.joint_names == tree.joint_names


def test_values_are_reduced(robots) -> None:
    coupled, tree = robots
    s = random_state(coupled, 4)
    q, G = expand(coupled, tree, s.q), coupling(coupled, tree)
    v, a = s.v @ G.T, s.a @ G.T
    M = G.T @ tree.mass_matrix(q) @ G
    tau = tree.inverse_dynamics(q, v, a, s.fext) @ G
    each_agrees(coupled.mass_matrix(s.q), M, 1e-13, "M")
    each_agrees(coupled.inverse_dynamics(*s), tau, 1e-12, "tau")
    each_agrees(coupled.gravity(s.q), tree.gravity(q) @ G, 1e-12, "g")
    each_agrees(coupled.bias(s.q, s.v), tree.bias(q, v) @ G, 1e-12, "b")
    each_agrees(coupled.coriolis_matrix(s.q, s.v), G.T @ tree.coriolis_matrix(q, v) @ G, 1e-12, "C")
    each_agrees(coupled.forward_kinematics(s.q), tree.forward_kinematics(q), 1e-13, "T")
    agree(coupled.kinetic_energy(s.q, s.v), tree.kinetic_energy(q, v), 1e-13)
    agree(coupled.potential_energy(s.q), tree.potential_energy(q), 1e-13)
    agree(coupled.center_of_mass(s.q), tree.center_of_mass(q), 1e-13)
    agree(coupled.centroidal_map(s.q), tree.centroidal_map(q) @ G, 1e-13)
    agree(coupled.centroidal_momentum(s.q, s.v), tree.centroidal_momentum(q, v), 1e-13)
    for frame in ("local", "world", "world_aligned"):
        agree(
            coupled.frame_jacobian(s.q, "l6", viewpoint=frame), tree.frame_jacobian(q, "l6", viewpoint=frame) @ G, 1e-13
        )
        agree(
            coupled.frame_velocity(s.q, s.v, "l6", viewpoint=frame),
            tree.frame_velocity(q, v, "l6", viewpoint=frame),
            1e-13,
        )
    each_agrees(coupled.inverse_mass_matrix(s.q), np.linalg.inv(M), 1e-10, "Minv")
    each_agrees(coupled.forward_dynamics(s.q, s.v, tau, s.fext), s.a, 1e-10, "a")


def test_inverse_derivatives_are_reduced(robots) -> None:
    coupled, tree = robots
    s = random_state(coupled, 4)
    q, G = expand(coupled, tree, s.q), coupling(coupled, tree)
    d = coupled.inverse_dynamics_derivatives(*s)
    full = tree.inverse_dynamics_derivatives(q, s.v @ G.T, s.a @ G.T, s.fext)
    for got, x in zip(d, full, strict=True):
        each_agrees(got, G.T @ x @ G, 1e-12)


def test_derivatives_equal_complex_step(robots) -> None:
    coupled, _ = robots
    assert max(finding.error for finding in verify.check(coupled)) < 1e-11


@pytest.mark.parametrize("method", ["auto", "fdsva-ltl", "complex-step"])
def test_forward_derivatives_by_every_method(robots, method: str) -> None:
    coupled, _ = robots
    s = random_state(coupled, 4)
    tau = coupled.inverse_dynamics(*s)
    d = coupled.forward_dynamics_derivatives(s.q, s.v, tau, s.fext, method=method)
    inverse = coupled.inverse_dynamics_derivatives(*s)
    M = coupled.mass_matrix(s.q)
    each_agrees(d.da_dq, -np.linalg.solve(M, inverse.dtau_dq), 1e-9)
    each_agrees(d.da_dv, -np.linalg.solve(M, inverse.dtau_dv), 1e-9)
    each_agrees(d.da_dtau, np.linalg.inv(M), 1e-9)


def test_configurations(robots) -> None:
    coupled, tree = robots
    s = random_state(coupled, 4)
    G = coupling(coupled, tree)
    moved = coupled.integrate(s.q, 0.1 * s.v)
    agree(expand(coupled, tree, moved), tree.integrate(expand(coupled, tree, s.q), 0.1 * s.v @ G.T), 1e-14)
    agree(coupled.difference(s.q, moved), 0.1 * s.v, 1e-13)
    assert coupled.neutral().shape == (coupled.nq,)


def test_locking_a_leader_locks_its_followers(robots) -> None:
    coupled, tree = robots
    locked = coupled.lock({"leader": 0.4})
    other = tree.lock({"leader": 0.4, "a_follower": 0.0, "c_slide": 0.12, "n_chained": -0.1})
    assert locked.joint_names == other.joint_names
    assert not locked.model.has_mimic
    s = random_state(locked)
    agree(locked.inverse_dynamics(*s), other.inverse_dynamics(*s), 1e-13)


def test_locking_another_joint_keeps_the_coupling(robots) -> None:
    coupled, tree = robots
    locked, other = coupled.lock({"m_free": 0.3}), tree.lock({"m_free": 0.3})
    s = random_state(locked)
    q, G = expand(locked, other, s.q), coupling(locked, other)
    agree(locked.inverse_dynamics(*s), other.inverse_dynamics(q, s.v @ G.T, s.a @ G.T, s.fext) @ G, 1e-12)


def test_a_follower_cannot_be_locked_alone(robots) -> None:
    with pytest.raises(InputError, match="'n_chained' mimics 'leader': lock 'leader'"):
        robots[0].lock({"n_chained": 0.0})


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('joint="a_follower" multiplier="2"', 'joint="nobody" multiplier="2"', "nobody"),
        ('joint="leader" multiplier="-0.5"', 'joint="n_chained" multiplier="-0.5"', "mimics itself"),
        ('joint="leader" multiplier="0.3"', 'joint="leader" multiplier="x"', "multiplier"),
    ],
)
def test_bad_mimics_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "bad.urdf"
    assert old in coupled_urdf()
    path.write_text(coupled_urdf().replace(old, new))
    with pytest.raises(ModelError, match=message):
        fj.load(path, mimic=True)


BROKEN = {"alex_psyonic_hands": "mimics joint 'index_q1', which does not exist"}


def with_mimics() -> list[str]:
    files = {name: path for name, path in fj.robots().items() if path != "built-in"}
    return [name for name, path in files.items() if "<mimic" in Path(path).read_text(errors="replace")]


@pytest.mark.parametrize("name", with_mimics())
@pytest.mark.filterwarnings("ignore::featherjet.errors.PhysicsWarning", "ignore::featherjet.errors.ModelWarning")
def test_robots_with_real_mimics(name: str) -> None:
    """The grippers of the wheel, coupled and verified; Pinocchio cannot differentiate these."""
    if name in BROKEN:
        with pytest.raises(ModelError, match=BROKEN[name]):
            fj.load(name, mimic=True)
        return
    robot, tree = fj.load(name, mimic=True), fj.load(name)
    assert robot.model.has_mimic == (robot.nv < tree.nv)
    s = random_state(robot, 2)
    d = robot.inverse_dynamics_derivatives(*s)
    for by, x in zip("qva", d, strict=True):
        true = verify.complex_step(robot, "inverse_dynamics", by, q=s.q, v=s.v, a=s.a, fext=s.fext)
        each_agrees(x, true, 1e-11, f"dtau_d{by}")


def test_some_robots_have_mimics() -> None:
    assert sum(fj.load(name, mimic=True).model.has_mimic for name in with_mimics() if name not in BROKEN) >= 3


# Compiled for the robot alone


@pytest.fixture(scope="module")
def compiled(robots) -> Pair:
    coupled, _ = robots
    return Pair(fj.Robot(coupled.model, backend="compiled", threads=1, unroll=True), coupled)


def test_compiled_code_gives_what_the_reference_gives(compiled) -> None:
    fixed = compiled.reference.joint_names[0] != "root_joint"
    names = CALLS if fixed else ["inverse_dynamics_derivatives", "forward_dynamics_derivatives", "centroidal_map"]
    kernel = kernel_of(compiled.compiled, "inverse_dynamics_derivatives", True)
    assert not isinstance(kernel, Chain), "test_coupled.py has code that robots share"
    for size in (1, 9):
        compare(compiled, random_state(compiled.reference, size, seed=size), names)
    one = ["kinetic_energy", "forward_dynamics_derivatives"] if fixed else ["centroidal_map"]
    compare(compiled, random_state(compiled.reference, 3), one, each=True)


def test_compiled_frames(compiled) -> None:
    s = random_state(compiled.reference, 5)
    for frame in ("local", "world", "world_aligned"):
        J, expected = (r.frame_jacobian(s.q, "l6", viewpoint=frame) for r in compiled[:2])
        agree(J, expected, 1e-13)


def test_compiled_mistakes_are_named_in_the_independent_coordinates(compiled) -> None:
    """The continuous joint's cosine and sine lie after the follower's, which are no coordinates."""
    robot, reference, _ = compiled
    s = random_state(reference, 5)
    start = reference.model.q_starts[reference.model.joint_index("b_own")]
    for k in (slice(None), 3):
        for spoil in (lambda q: spoiled(q, (..., start), 3.0), lambda q: spoiled(q, (..., -1), np.nan)):
            said = []
            for r in (robot, reference):
                with pytest.raises(InputError) as error:
                    r.gravity(spoil(s.q[k]))
                said.append(str(error.value))
            assert said[0] == said[1]
    q = s.q.copy()
    q[:, start : start + 2] *= 1 + 5e-7
    agree(robot.gravity(q), reference.gravity(s.q), 1e-12)


def test_compiled_singular_mass_matrices_are_refused() -> None:
    """Two joints that carry nothing but each other; the follower makes them one coordinate, still without inertia."""
    b = fj.ModelBuilder("nothing")
    b.add_joint("leader", "revolute")
    b.add_joint("follower", "revolute", "leader", mimic=Mimic("leader", -1.0))
    b.add_body("follower", 1.0, np.zeros(3), np.diag([0.1, 0.2, 0.3]))
    model = b.build()
    said = []
    for robot in (fj.Robot(model, backend=backend) for backend in ("compiled", "numpy")):
        for q in (np.zeros(1), np.zeros((5, 1))):
            with pytest.raises(SingularMassMatrix, match="'leader'") as error:
                robot.forward_dynamics(q, q, q)
        said.append(str(error.value))
    assert said[0] == said[1]


@pytest.mark.filterwarnings("ignore::featherjet.errors.PhysicsWarning")
def test_a_real_gripper_compiled() -> None:
    pair = Pair(*(fj.load("panda", mimic=True, backend=backend) for backend in ("compiled", "numpy")))
    s = random_state(pair.reference, 9)
    compare(pair, s, ["inverse_dynamics_derivatives", "forward_dynamics_derivatives"])
