"""Quantities of Dask arrays: lazy, with known shapes and dtypes, and equal to those of NumPy arrays."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import featherjet as fj
from featherjet.errors import InputError, SingularMassMatrix
from featherjet.evaluate.evaluator import Evaluator
from featherjet.evaluate.lazy import LazyBlock, packed
from featherjet.jit.workers import on_this_thread

dask = pytest.importorskip("dask", reason="the extra featherjet[dask] is not installed")
da = pytest.importorskip("dask.array", reason="the extra featherjet[dask] is not installed")

N = 20
ROBOT = fj.load("quadruped")
FOOT = "LF_foot"
HELD = fj.Contacts(ROBOT, [fj.PointContact(FOOT)])


@pytest.fixture(autouse=True)
def on_one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def state(rng):
    return ROBOT.random_configuration(rng, size=N), *rng.normal(size=(2, N, ROBOT.nv))


def lazily(x, chunk=7):
    return da.from_array(x, chunks=(chunk, *x.shape[1:]))


QUANTITIES = {
    "one result": lambda r, q, v, a: r.inverse_dynamics(q, v, a),
    "several": lambda r, q, v, a: r.inverse_dynamics_derivatives(q, v, a),
    "a number": lambda r, q, v, a: r.kinetic_energy(q, v),
    "a frame": lambda r, q, v, a: r.frame_jacobian(q, FOOT, viewpoint="world_aligned"),
    "contacts": lambda r, q, v, a: r.constrained_dynamics(q, v, a, HELD),
    "impulses": lambda r, q, v, a: r.impulse_dynamics(q, v, HELD),
    "derivatives of impulses": lambda r, q, v, a: r.impulse_dynamics_derivatives(q, v, HELD),
    "products": lambda r, q, v, a: r.vjp("forward_dynamics", q, v, a, v),
    "configurations": lambda r, q, v, a: r.interpolate(q, q[::-1], 0.3),
    "tensors": lambda r, q, v, a: r.forward_dynamics_second_derivatives(q[:2], v[:2], a[:2]),
    "forces": lambda r, q, v, a: r.forward_dynamics(q, v, a, np.ones((r.njoints, 6))),
    "method": lambda r, q, v, a: r.inverse_dynamics_derivatives(q, v, a, method="chain-rule"),
    "convention": lambda r, q, v, a: r.with_convention("kindr").bias(r.with_convention("kindr").neutral(), v),
}


@pytest.mark.parametrize("quantity", QUANTITIES.values(), ids=QUANTITIES)
def test_lazy_results_are_those_of_numbers(quantity, state):
    want = quantity(ROBOT, *state)
    found = quantity(ROBOT, *map(lazily, state))
    assert type(found) is type(want) or isinstance(found, da.Array)
    for x, y in zip(found, want, strict=True) if isinstance(want, tuple) else [(found, want)]:
        assert isinstance(x, da.Array)
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        got = x.compute()
        assert (got.shape, got.dtype) == (y.shape, y.dtype)
        # the reference adds in another order when the batch has another length
        np.testing.assert_allclose(got, y, rtol=0, atol=1e-12 * np.abs(y).max())


def test_nothing_is_computed_early(state):
    bad = da.from_array(np.full_like(state[0], np.nan), chunks=(5, -1))
    tau = ROBOT.gravity(bad)
    with pytest.raises(InputError, match="finite"):
        tau.compute()


def test_a_singular_mass_matrix_shows_when_it_is_computed():
    builder = fj.ModelBuilder("massless")
    builder.add_joint("a", "revolute")
    robot = fj.Robot(builder.build())
    q = da.zeros((4, 1), chunks=(2, 1))
    a = robot.forward_dynamics(q, q, q)
    with pytest.raises(SingularMassMatrix):
        a.compute()


def test_batches_broadcast_and_mix_with_numbers(state):
    q, v, a = state
    found = ROBOT.bias(lazily(q)[:, None], v[None, :3])
    assert found.shape == (N, 3, ROBOT.nv)
    np.testing.assert_allclose(found.compute(), ROBOT.bias(q[:, None], v[None, :3]), rtol=0, atol=1e-12)
    found = ROBOT.inverse_dynamics(lazily(q, 5), lazily(v, 8), a[0].tolist())
    np.testing.assert_allclose(found.compute(), ROBOT.inverse_dynamics(q, v, a[0]), rtol=0, atol=1e-11)
    one = ROBOT.gravity(da.from_array(q[0]))
    assert one.shape == (ROBOT.nv,)
    np.testing.assert_allclose(one.compute(), ROBOT.gravity(q[0]), rtol=0, atol=1e-12)


def test_unknown_lengths(state):
    q = state[0]
    Q = lazily(q)
    found = ROBOT.gravity(Q[Q[:, 0] > 0])
    assert np.isnan(found.shape[0])
    np.testing.assert_allclose(found.compute(), ROBOT.gravity(q[q[:, 0] > 0]), rtol=0, atol=1e-12)


def test_single_precision(state):
    q, v, _ = (x.astype(np.float32) for x in state)
    assert ROBOT.bias(lazily(q), lazily(v)).dtype == np.float32
    assert ROBOT.bias(lazily(q), lazily(v)).compute().dtype == np.float32
    assert ROBOT.bias(lazily(q), v.astype(float)).dtype == np.float64
    kindr = ROBOT.with_convention("kindr")
    k = np.tile(kindr.neutral(), (N, 1)).astype(np.float32)
    assert kindr.gravity(lazily(k)).dtype == kindr.gravity(k).dtype


def test_equal_calls_have_equal_names(state):
    Q, V, _ = map(lazily, state)
    assert ROBOT.bias(Q, V).name == ROBOT.bias(Q, V).name
    assert ROBOT.bias(Q, V).name != ROBOT.with_gravity([0, 0, -1]).bias(Q, V).name
    assert ROBOT.gravity(Q).name != ROBOT.potential_energy(Q).name


def test_blocks_travel_by_pickle_and_share_one_robot(state):
    """All blocks of a robot that a process receives compute with the same evaluator."""
    tau = ROBOT.gravity(lazily(state[0]))
    assert len(pickle.dumps(tau.dask)) < 100_000
    what = ROBOT.evaluator, "gravity", {}
    block = LazyBlock(packed(ROBOT.evaluator, "key", "gravity", {}), what, (), "<f8")
    blocks = [pickle.loads(pickle.dumps(block)) for _ in range(2)]
    assert blocks[0].evaluator is blocks[1].evaluator is not ROBOT.evaluator
    np.testing.assert_array_equal(blocks[0](state[0])[0], ROBOT.gravity(state[0]))


def test_a_block_stays_on_its_thread(monkeypatch, state):
    seen = []
    run = Evaluator.run

    def watched(self, *given, **more):
        seen.append(bool(on_this_thread))
        return run(self, *given, **more)

    monkeypatch.setattr(Evaluator, "run", watched)
    ROBOT.evaluator.run("gravity", (lazily(state[0]),))[0].compute()
    assert seen == [False, True, True, True]


def test_refusals(state):
    q, v, _ = state
    Q, V, A = map(lazily, state)
    for call, said in (
        (
            lambda: ROBOT.gravity(Q.rechunk((N, 10))),
            r"q: axis 1 \(nq = 19\) is cut into 2 chunks.*q.rechunk\({1: -1}\)",
        ),
        (lambda: ROBOT.gravity(V), "expected shape"),
        (lambda: ROBOT.gravity(Q.astype(complex)), "real numbers"),
        (lambda: ROBOT.bias(Q, V[:3]), "do not broadcast"),
        (lambda: ROBOT.bias(Q, np.full_like(v, np.inf)), "finite"),
        (lambda: ROBOT.gravity(Q, out=np.zeros_like(v)), "out: "),
        (lambda: ROBOT.gravity(dask.delayed(q)), "from_delayed"),
        (lambda: ROBOT.evaluator.checked_q("q", Q), "compute()"),
        (lambda: ROBOT.simulate(Q[0], v[0]), "compute()"),
        (lambda: ROBOT.contact_inverse_dynamics(Q, V, A, HELD), "needs `forces`"),
        (lambda: ROBOT.vjp("center_of_mass", Q, V[:, :3]), "w: this needs numbers"),
    ):
        with pytest.raises(InputError, match=said):
            call()
