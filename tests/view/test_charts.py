"""Plots: what their lines show is what the motion is, and nothing is written without a path."""

from __future__ import annotations

import numpy as np
import pytest

import featherjet as fj
from featherjet.cli import main
from featherjet.errors import InputError, UnknownName
from featherjet.view.matrices import pattern

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'featherjet[plots]'")

FEET = ("LF_foot", "RF_foot", "LH_foot", "RH_foot")


@pytest.fixture(scope="module")
def motion() -> fj.Trajectory:
    robot = fj.load("quadruped", backend="numpy")
    q = robot.neutral()
    q[2] = 0.61
    ground = fj.Ground(robot, list(FEET), friction=[0.3, 0.4, 0.5, 0.6])
    hold = np.concatenate([np.zeros(6), np.linspace(-30, 30, robot.nv - 6)])
    return robot.simulate(q, np.zeros(robot.nv), hold, ground, dt=0.01, duration=0.1, progress=False)


def titles(figure) -> list[str]:
    return [ax.get_title() for ax in figure.axes]


@pytest.mark.parametrize("what", ["curves", "torques", "phase", "contacts"])
def test_a_figure_is_returned_and_written_only_to_a_path(motion, what, tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    monkeypatch.chdir(tmp_path)
    assert isinstance(motion.plot(what=what), Figure)
    assert not list(tmp_path.iterdir())
    motion.plot("t.png", what=what)
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")


def test_the_backend_of_the_user_stays(motion):
    import matplotlib

    matplotlib.use("svg")
    motion.plot()
    assert matplotlib.get_backend() == "svg"


def test_torques_have_their_limits(motion):
    figure = motion.plot(what="torques")
    limits, names = fj.load("quadruped").limits().effort, motion.model.joint_names
    assert len(figure.axes) == 12
    for ax, name in zip(figure.axes, names[1:], strict=True):
        k = motion.model.v_starts[motion.model.joint_index(name)]
        assert ax.get_title().startswith(name)
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), motion.tau[:, k])
        if np.isfinite(limits[k]):
            assert {float(line.get_ydata()[0]) for line in ax.lines[2:]} == {-limits[k], limits[k]}
            assert f"{np.abs(motion.tau[:, k]).max() / limits[k]:.0%}" in ax.get_title()


def test_phase_portraits(motion):
    figure = motion.plot(what="phase")
    assert set(titles(figure)) == set(motion.model.joint_names[1:])
    ax = figure.axes[titles(figure).index(motion.model.joint_names[3])]
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), motion.q[:, 9])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), motion.v[:, 8])


def test_joints_that_stand_still_show_no_rounding_errors():
    from featherjet.view.charts import phase_figure

    builder = fj.ModelBuilder("pair")
    for name in ("moves", "rests"):
        builder.add_joint(name, "revolute")
        builder.add_body(name, 1.0)
    q = np.stack([np.linspace(0, 1, 20), 1e-16 * np.arange(20)], -1)
    moves, rests = phase_figure(builder.build(), q, 2 * q, "").axes
    assert np.ptp(moves.get_xlim()) < 1.2
    np.testing.assert_allclose([np.ptp(rests.get_xlim()), np.ptp(rests.get_ylim())], [0.05, 0.1])


def test_phase_of_a_continuous_joint_does_not_jump():
    from featherjet.view.charts import phase_figure

    builder = fj.ModelBuilder("wheel")
    builder.add_joint("hub", "continuous")
    builder.add_body("hub", 1.0, inertia=np.eye(3))
    angle = np.linspace(0, 15, 100)
    figure = phase_figure(builder.build(), np.stack([np.cos(angle), np.sin(angle)], -1), np.ones((100, 1)), "")
    np.testing.assert_allclose(figure.axes[0].lines[0].get_xdata(), angle, atol=1e-12)


def test_forces_are_in_their_cones(motion):
    figure = motion.plot(what="contacts")
    assert titles(figure) == list(FEET)
    for ax, mu, f in zip(figure.axes, motion.friction, motion.split().values(), strict=True):
        left, tip, right = ax.lines[0].get_xydata()
        np.testing.assert_allclose(right / right[1], [mu, 1.0])
        np.testing.assert_array_equal(tip, 0)
        np.testing.assert_allclose(np.abs(ax.lines[1].get_xdata()), np.hypot(*f[:, :2].T))
        assert (np.abs(ax.lines[1].get_xdata()) <= mu * ax.lines[1].get_ydata() + 1e-6).all()
        assert left[0] == -right[0]
    robot = fj.load("arm", backend="numpy")
    swing = robot.simulate(robot.neutral(), np.zeros(7), dt=0.01, duration=0.02, progress=False)
    with pytest.raises(InputError, match="no contacts"):
        swing.plot(what="contacts")


def test_friction_is_saved(motion, tmp_path):
    assert fj.Trajectory.load(motion.save(tmp_path / "t.npz")).friction == (0.3, 0.4, 0.5, 0.6)


def test_unknown_plots_are_refused(motion, tmp_path):
    with pytest.raises(UnknownName, match="torques"):
        motion.plot(what="torqes")
    with pytest.raises(InputError, match=r"ends in \.png"):
        motion.plot(tmp_path / "t.pdf")


def test_sparsity_is_that_of_the_tree(tmp_path):
    """The mass matrix couples dofs on a common path to the root, and no others."""
    robot = fj.load("quadruped", backend="numpy")
    figure = robot.plot_sparsity(tmp_path / "spy.png")
    assert len(figure.axes) == 6
    held = np.asarray(figure.axes[2].images[0].get_array())
    leg = np.where(np.arange(robot.nv) < 6, -1, (np.arange(robot.nv) - 6) // 3)
    same = (leg[:, None] == leg) | (leg[:, None] < 0) | (leg < 0)
    M = np.abs(robot.mass_matrix(robot.random_configuration(7, 5))).max(0)
    np.testing.assert_array_equal(held.astype(bool), M > 1e-12 * M.max())
    assert not held[~same].any()
    assert f"{held.mean():.0%}" in figure.axes[2].get_title()
    assert not pattern(np.array([[[1.0, 1e-15], [0.0, 2.0]]]))[0, 1]


def test_the_command_draws(motion, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    motion.save("s.npz")
    assert main(["plot", "s.npz", "--what", "contacts"]) == 0
    assert main(["plot", "arm", "--what", "sparsity"]) == 0
    assert {"s.png", "arm.png"} <= {p.name for p in tmp_path.iterdir()}
