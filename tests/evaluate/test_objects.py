"""Objects at the border: masked arrays, results that share memory, copies, pickled contacts, too many threads."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import featherjet as fj
from featherjet.errors import InputError, ModelError

BOTH = pytest.mark.parametrize("backend", ["compiled", "numpy"])
MODEL = fj.models.chain(3)
THROUGH = pytest.mark.parametrize("through", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, copy.copy])


@BOTH
def test_masked_entries_are_refused(backend):
    robot, q = fj.Robot(MODEL, backend=backend), np.ma.masked_array([0.1, 0.2, 0.3], mask=[0, 1, 0])
    for _ in range(2):
        with pytest.raises(InputError, match="q: some entries are masked"):
            robot.gravity(q)
    whole = np.ma.masked_array([0.1, 0.2, 0.3])
    np.testing.assert_array_equal(robot.gravity(whole), robot.gravity(np.asarray(whole)))


def test_masked_entries_are_refused_by_models_and_bound_calls():
    model, hidden = fj.models.chain(3), np.ma.masked_array([0.1, 0.2, 0.3], mask=[0, 1, 0])
    step = fj.Robot(model, backend="numpy").bind("gravity")
    with pytest.raises(InputError, match="q: some entries are masked"):
        step.q = hidden
    assert (step.q == 0).all()
    with pytest.raises(ModelError, match="gravity: some entries are masked"):
        model.with_gravity(hidden)
    b = fj.ModelBuilder("masked")
    b.add_joint("a", "revolute")
    with pytest.raises(ModelError, match="masked"):
        b.add_body("a", 1.0, hidden)
    with pytest.raises(InputError, match="masked"):
        fj.Robot(model, backend="numpy").lock({"joint0": hidden[1:2]})


@BOTH
@pytest.mark.parametrize("size", [(), (5,), (100,)])
def test_results_that_share_memory_are_refused(backend, size):
    robot = fj.Robot(MODEL, backend=backend)
    q = np.zeros((*size, 3))
    for _ in range(3):  # single states: the direct call too
        expected = robot.inverse_dynamics_derivatives(q, q, q)
    A = np.zeros((*size, 3, 3))
    with pytest.raises(InputError, match="share memory"):
        robot.inverse_dynamics_derivatives(q, q, q, out=(A, A, A))
    buffer = np.zeros(A.size + 1)
    shifted = [buffer[k : k + A.size].reshape(A.shape) for k in (0, 1)]
    with pytest.raises(InputError, match="share memory"):
        robot.inverse_dynamics_derivatives(q, q, q, out=(*shifted, A))
    beside = np.zeros((*size, 3, 3, 3))  # views of one array that have no entry in common
    found = robot.inverse_dynamics_derivatives(q, q, q, out=tuple(beside[..., k, :, :] for k in range(3)))
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)


@BOTH
@THROUGH
def test_bound_calls_are_copied_with_their_inputs(backend, through):
    step = fj.Robot(MODEL, backend=backend).bind("inverse_dynamics")
    step.q, step.v, step.a = 0.3, [1.0, 2.0, 3.0], 0.5
    step()
    other = through(step)
    np.testing.assert_array_equal(other.v, step.v)
    np.testing.assert_array_equal(other.tau, step.tau)
    other.q = 1.0
    other()
    assert (step.q == 0.3).all()
    assert (other.tau != step.tau).any()


@BOTH
def test_pickled_contacts_belong_to_their_robot(backend):
    robot = fj.Robot(fj.models.quadruped(), backend=backend)
    feet = [f.name for f in robot.model.frames if "foot" in f.name.lower()][:2]
    contacts = fj.Contacts(robot, [fj.PointContact(name) for name in feet])
    q, v = robot.neutral(), np.zeros(robot.nv)
    expected = robot.constrained_dynamics(q, v, v, contacts).a
    apart = pickle.loads(pickle.dumps(contacts))
    np.testing.assert_array_equal(robot.constrained_dynamics(q, v, v, apart).a, expected)
    both = pickle.loads(pickle.dumps((robot, contacts)))
    np.testing.assert_array_equal(both[0].constrained_dynamics(q, v, v, both[1]).a, expected)
    other = fj.Robot(fj.models.humanoid(), backend=backend)
    with pytest.raises(InputError, match="another robot"):
        other.constrained_dynamics(other.neutral(), np.zeros(other.nv), np.zeros(other.nv), contacts)


@pytest.mark.parametrize("count", [0, -1, 10**9, 10**400, True, 2.0, "2"])
def test_impossible_numbers_of_threads_are_refused(count):
    with pytest.raises(InputError, match="threads"):
        fj.Robot(MODEL, backend="numpy", threads=count)
