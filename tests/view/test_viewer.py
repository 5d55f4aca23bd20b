"""The viewer, in a real browser: the page loads, shows the robot in its middle, and the slider moves it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import featherjet as fj
from browser import PATIENCE, blue, come_true, in_the_middle, opened
from featherjet.errors import InputError, UnknownName
from featherjet.math import rotations as so3
from featherjet.model.builder import transform
from featherjet.view.bodies import LIMB, body_shapes
from featherjet.view.browser import chromium
from featherjet.view.recording import save_film
from helpers import agree, error

pytest.importorskip("viser", reason="viser is not installed: pip install 'featherjet[viewer]'")
needs_browser = pytest.mark.skipif(chromium() is None, reason="no chromium here: apt-get install chromium")

CURSOR = "((x => (x.getAttribute('x1') - x.dataset.from) / x.dataset.width)(document.querySelector('#curves .now')))"
TRACK = (
    "(r => [r.left, r.top + r.height / 2, r.width])"
    "(document.querySelector('.mantine-Slider-track').getBoundingClientRect())"
)
SLIDER = "document.querySelector('[role=slider]')"


@pytest.fixture(scope="module")
def result() -> fj.Transition:
    robot = fj.load("humanoid", backend="numpy")
    q = robot.neutral()
    q[2] = 0.95
    end = robot.integrate(q, np.concatenate([[0.1, 0, -0.1, 0, 0.2, 0.3], 0.6 * np.cos(np.arange(32))]))
    rest = np.zeros(robot.nv)
    return fj.transition(robot, (q, rest), (end, rest), 1.0, intervals=3, max_iterations=2, points=3)


@pytest.fixture
def viewer(result):
    from featherjet.view.viewer import Viewer

    made = Viewer(result, port=18080, play=False)
    yield made.start()
    made.stop()
    assert not made._thread.is_alive()


def placed(viewer) -> np.ndarray:
    """Where the page's links are: (njoints, 4, 4)."""
    links = viewer.stage.actors[0].links
    T = np.tile(np.eye(4), (len(links), 1, 1))
    T[:, :3, :3] = so3.matrix_from_quaternion(np.array([link.wxyz for link in links]))
    T[:, :3, 3] = [link.position for link in links]
    return T


def scene(page) -> np.ndarray:
    """The picture beside the panel, without the axes in its corner."""
    pixels = page.pixels()[:, : page.script("document.querySelector('canvas').clientWidth")]
    pixels[-90:, :90] = 255
    return pixels


@needs_browser
def test_the_page_shows_the_robot_and_the_slider_moves_it(viewer, result, tmp_path):
    with opened(viewer.url) as page:
        page.wait("document.querySelector('canvas') !== null")
        page.wait(f"{SLIDER} !== null")
        page.wait(f"document.body.innerText.includes('featherjet: {result.robot.name}')")
        come_true(lambda: blue(scene(page)).sum() >= 2000, "the robot does not show")
        before = scene(page)
        assert page.script("document.querySelector('canvas').clientWidth") < 1000  # the panel is beside it
        assert in_the_middle(blue(before))
        page.wait("document.body.innerText.includes('energy')")
        page.wait("document.querySelectorAll('.uplot').length >= 2")  # both curves
        assert float(page.script(f"{SLIDER}.getAttribute('aria-valuenow')")) == 0.0
        agree(placed(viewer), result.robot.forward_kinematics(result.q(0.0)), 1e-6)

        page.script(f"{SLIDER}.focus()")
        page.press("End", 35)
        page.wait(f"{SLIDER}.getAttribute('aria-valuenow') == {result.duration}")
        come_true(
            lambda: abs(viewer.panel.slider.value - result.duration) <= 1e-9, "the slider does not reach the server"
        )
        there = result.robot.forward_kinematics(result.q(result.duration))
        come_true(lambda: error(placed(viewer), there) <= 1e-6, "the robot does not follow the slider")

        def changed() -> int:
            return (blue(before) ^ blue(scene(page))).sum()

        come_true(lambda: changed() > 0.1 * blue(before).sum(), "the page does not show the robot elsewhere")


def test_links_are_where_the_robot_is(viewer, result):
    for t in (0.0, 0.37, 1.0):
        viewer.show(t)
        agree(placed(viewer), result.robot.forward_kinematics(result.q(t)), 1e-6)


def test_a_simulation_shows_its_ground_and_its_forces():
    from featherjet.simulation.playback import Playback
    from featherjet.view.viewer import Viewer

    robot = fj.load("quadruped", backend="numpy")
    q = robot.neutral()
    q[2] = 0.61
    ground = fj.Ground(robot, ["LF_foot", "RH_foot"])
    motion = robot.simulate(q, np.zeros(robot.nv), contacts=ground, dt=0.01, duration=0.1)
    made = Viewer(Playback(motion), port=18081, play=False)
    try:
        made.show(0.1)
        start, end = np.moveaxis(np.asarray(made.stage.arrows[0].points), 1, 0)
        agree(start, motion.arrows[-1, :, 0], 1e-6)
        agree((end - start) / made.stage.scale(0), motion.forces[-1].reshape(2, 3), 1e-5)
        assert np.abs(motion.forces[-1]).max() > 1.0
    finally:
        made.stop()


def test_a_small_robot_keeps_its_colours_in_a_gif_beside_a_large_sky(tmp_path):
    image = pytest.importorskip("PIL.Image")
    y, x = np.mgrid[:300, :400] / 400
    frame = np.stack([200 + 40 * y, 210 + 30 * x, 225 + 25 * x * y], -1).astype(np.uint8)
    rng = np.random.default_rng(0)
    frame[50:60, 50:60] = np.array([220, 40, 30]) + rng.integers(-20, 20, (10, 10, 3))  # shades of red
    save_film(tmp_path / "film.gif", [frame, frame], 10.0)
    again = np.asarray(image.open(tmp_path / "film.gif").convert("RGB"), int)
    assert np.abs(again - frame).max(-1)[50:60, 50:60].mean() < 12
    assert len(np.unique(again[:, 0, 0])) > 6  # and the sky is no flag


def test_playing_goes_on_and_round(viewer, result):
    viewer.panel.playing.value = True
    seen = set()
    come_true(lambda: seen.add(viewer.panel.slider.value) or len(seen) >= 6, "the motion does not play")
    assert all(0 <= t <= result.duration for t in seen)


@pytest.mark.parametrize("name", ["arm", "quadruped", "humanoid"])
def test_bodies_without_looks_reach_from_joint_to_joint(name):
    model = fj.load(name).model
    limbs = {s.joint: s.mesh for s in body_shapes(model) if s.colour == LIMB}
    assert list(limbs) == list(range(model.njoints))
    for joint in model.joints:
        if joint.parent >= 0:
            assert inside(limbs[joint.parent], joint.placement[:3, 3])
    for i, mesh in limbs.items():
        assert inside(mesh, np.zeros(3))
        assert inside(mesh, model.joints[i].body.com)
        assert mesh.is_watertight
        assert mesh.volume > 0  # triangles face outwards


def inside(mesh, point) -> bool:
    """Whether a point (3,) lies within the convex hull of a mesh: nowhere farther out than its vertices."""
    directions = np.random.default_rng(0).normal(size=(2000, 3))
    return bool((directions @ point <= (directions @ mesh.vertices.T).max(1)).all())


def test_a_trunk_is_as_large_as_its_inertia_says_and_a_made_up_inertia_swallows_no_robot():
    trunk = next(s for s in body_shapes(fj.load("quadruped").model) if s.joint == 0).mesh
    np.testing.assert_allclose(trunk.extents[1:], [0.3, 0.2], atol=0.01)  # and the hips, before and behind
    b = fj.ModelBuilder("fake")
    b.add_joint("hip", "revolute", axis=(0, 1, 0))
    b.add_body("hip", 1e-3, (0, 0, 0), np.eye(3))
    b.add_joint("knee", "revolute", "hip", transform(p=(0, 0, -0.4)), axis=(0, 1, 0))
    b.add_body("knee", 1e-3, (0, 0, 0), np.eye(3))
    for shape in body_shapes(b.build()):
        assert shape.mesh.extents.max() < 1.0


@pytest.fixture
def shown():
    """Viewers that are stopped in the end."""
    made: list = []

    def show(thing, *args, **options):
        made.append(thing.view(*args, port=18100, play=False, **options))
        return made[-1]

    yield show
    for viewer in made:
        viewer.stop()


@needs_browser
def test_a_robot_has_the_same_colours_alone_and_among_others(shown):
    robot = fj.load("arm", backend="numpy")
    alone, among = (shown(robot, q).screenshot(size=(320, 200)).astype(float) for q in (np.zeros(7), np.zeros((2, 7))))
    colours = [np.median(pixels[blue(pixels)], axis=0) for pixels in (alone, among)]
    assert np.abs(colours[0] - colours[1]).max() < 12


def test_robots_side_by_side_stand_on_the_same_ground():
    viewer = fj.show(fj.load("quadruped"), fj.load("arm"), port=18100)
    try:
        quadruped, arm = viewer.stage.actors
        np.testing.assert_allclose(viewer.stage.low[2], 0, atol=0.02)
        assert quadruped.offsets[0, 2] > 0.5  # its feet are that far below its trunk
        assert arm.offsets[0, 2] < 0.05
    finally:
        viewer.stop()


def test_worlds_without_contacts_play_side_by_side(shown):
    robot = fj.load("arm", backend="numpy")
    motion = robot.simulate(np.zeros((3, 7)), np.ones(7), dt=0.01, duration=0.05, progress=False)
    viewer = shown(motion)
    viewer.show(0.05)
    assert viewer.stage.actors[0]._T.shape[:2] == (3, robot.njoints)


def test_configurations_in_a_row_play_as_a_motion(shown):
    robot = fj.load("arm", backend="numpy")
    q = np.linspace(0, 1, 11)[:, None] * np.ones(7)
    viewer = shown(robot, q, dt=0.1, traces=["tool"])
    assert np.isclose(viewer.duration, 1.0)
    viewer.show(0.55)
    agree(placed(viewer), robot.forward_kinematics(np.full(7, 0.55)), 1e-6)
    assert len(viewer.stage.traces) == 1
    assert shown(robot, np.stack([q, -q]), dt=0.1).motions[0].worlds == 2


@pytest.mark.parametrize(
    "wrong,said",
    [
        ({"q": np.zeros(7), "dt": 0.1}, r"at least two configurations, shape \(\.\.\., n, 7\); got \(7,\)"),
        ({"q": np.zeros((3, 7)), "dt": 0.0}, "dt: expected a positive number, got 0.0"),
        ({"q": np.zeros((3, 7)), "dt": 0.1, "fext": np.zeros((7, 6))}, "leave out dt, or fext"),
    ],
)
def test_samples_that_are_no_motion_are_refused(wrong, said):
    with pytest.raises(InputError, match=said):
        fj.load("arm", backend="numpy").view(**wrong)


def test_sliders_move_a_robot_within_its_limits(shown):
    robot = fj.load("quadruped", backend="numpy")
    viewer = shown(robot)
    limits, sliders = robot.limits(), viewer.panel.sliders
    assert len(sliders) == robot.nv
    assert (sliders[6].min, sliders[6].max) == (limits.lower[7], limits.upper[7])
    sliders[2].value, sliders[5].value, sliders[9].value = 0.7, 0.3, -0.4
    q = robot.neutral()
    q[2], q[5:7], q[10] = 0.7, [np.sin(0.15), np.cos(0.15)], -0.4
    come_true(lambda: error(placed(viewer), robot.forward_kinematics(q)) <= 1e-6, "the robot does not follow")


def test_sliders_of_every_kind_of_joint(rng):
    from featherjet.model.joints import KINDS
    from featherjet.view.pose import Pose

    builder = fj.ModelBuilder("all")
    for k, kind in enumerate(KINDS):
        builder.add_joint(kind, kind, parent=None if k == 0 else list(KINDS)[k - 1])
        builder.add_body(kind, 1.0, inertia=np.eye(3))
    robot = fj.Robot(builder.build(), backend="numpy")
    q = robot.integrate(robot.neutral(), rng.uniform(-1, 1, robot.nv))
    pose = Pose(robot.evaluator, q)
    values = [s.value for s in pose.sliders()]
    pose.move(np.zeros(robot.nv))
    agree(pose.configurations[0], robot.neutral(), 1e-12)
    pose.move(values)
    agree(robot.forward_kinematics(pose.configurations[0]), robot.forward_kinematics(q), 1e-12)


def test_layers(shown):
    robot = fj.load("humanoid", backend="numpy")
    q = robot.random_configuration(3)
    viewer = shown(robot, q)
    (actor,) = viewer.stage.actors
    for layer in ("inertia", "frames", "names", "centre of mass"):
        actor.show_layer(layer, True)
    (mass,) = actor._layers["centre of mass"]
    agree(np.asarray(mass.batched_positions)[0], robot.center_of_mass(q), 1e-6)
    (axes,) = actor._layers["frames"]
    agree(np.asarray(axes.batched_positions), robot.forward_kinematics(q)[:, :3, 3], 1e-6)
    actor.show_layer("frames", False)
    assert not axes.visible


def test_inertia_ellipsoids_have_the_bodies_inertia():
    from featherjet.view.actor import inertias

    model = fj.load("humanoid").model
    found = inertias(model)
    assert found
    for shape in found:
        body, mesh = model.joints[shape.joint].body, shape.mesh.copy()
        mesh.apply_transform(shape.placement)
        mesh.density = body.mass / mesh.volume
        np.testing.assert_allclose(mesh.center_mass, body.com, atol=1e-9)
        size = np.abs(body.inertia).max()  # the ball has few faces: its half axes are 2 % short
        np.testing.assert_allclose(mesh.moment_inertia, body.inertia, atol=0.06 * size)


def test_external_forces(shown):
    robot = fj.load("arm", backend="numpy")
    q, fext = robot.random_configuration(1), np.zeros((robot.njoints, 6))
    fext[3, :3] = 1, 2, 3
    viewer = shown(robot, q, fext)
    start, end = np.moveaxis(np.asarray(viewer.stage.arrows[0].points), 1, 0)
    T = robot.forward_kinematics(q)
    agree(start, T[3:4, :3, 3], 1e-6)  # no arrows where there are no forces
    agree((end - start)[0] / viewer.stage.scale(0), T[3, :3, :3] @ [1, 2, 3], 1e-4)


def test_worlds_stand_side_by_side(shown):
    robot = fj.load("quadruped", backend="numpy")
    q = np.tile(robot.neutral(), (6, 1))
    q[:, 2] = np.linspace(0.6, 0.8, 6)
    ground = fj.Ground(robot, ["LF_foot", "RH_foot"])
    motion = robot.simulate(q, np.zeros(robot.nv), contacts=ground, dt=0.01, duration=0.05, progress=False)
    viewer = shown(motion)
    (actor,) = viewer.stage.actors
    apart = actor.offsets[:, None] - actor.offsets
    distances = np.linalg.norm(apart, axis=-1)[~np.eye(6, dtype=bool)]
    assert distances.min() > 0.5
    viewer.show(0.05)
    handle, shape = actor._drawn["visual"][0]
    there = robot.forward_kinematics(motion.q[:, -1])[:, shape.joint] @ shape.placement
    agree(np.asarray(handle.batched_positions), there[:, :3, 3] + actor.offsets, 1e-6)
    lines = np.asarray(viewer.stage.arrows[0].points)
    points = (motion.arrows[:, -1, :, 0] + actor.offsets[:, None]).reshape(-1, 3)
    pressed = np.linalg.norm(motion.arrows[:, -1, :, 1], axis=-1).ravel() > 1.0
    assert 0 < pressed.sum() < len(points)  # some are still in the air
    agree(lines[:, 0], points[pressed], 1e-6)
    assert shown(motion, spacing=0.0).stage.actors[0].offsets.max() == 0


def test_several_things_in_one_page(result):
    robot = fj.load("arm", backend="numpy")
    viewer = fj.show(robot, result, port=18101, play=False, traces=[])
    try:
        viewer.show(0.5)
        humanoid = viewer.stage.actors[1]
        there = result.robot.forward_kinematics(result.q(0.5))[:, :3, 3] + humanoid.offsets[0]
        agree(np.array([link.position for link in humanoid.links]), there, 1e-6)
        assert viewer.url in viewer._repr_html_()
    finally:
        viewer.stop()
    with pytest.raises(InputError, match="expected robots, trajectories and transitions, got str"):
        fj.show("panda")


@pytest.mark.parametrize(
    "options, says",
    [
        ({"traces": ["elbow"]}, "unknown frame 'elbow'"),
        ({"traces": "tool"}, "traces: expected a list of frames, got 'tool'"),
        ({"spacing": -1}, "spacing: expected a positive number, got -1"),
        ({"spacing": "wide"}, "spacing: expected a positive number, got 'wide'"),
        ({"spacing": float("nan")}, "spacing: expected a positive number, got nan"),
    ],
)
def test_what_cannot_be_drawn_is_refused(options, says):
    robot = fj.load("arm", backend="numpy")
    with pytest.raises((InputError, UnknownName), match=says):
        fj.show(robot, port=18104, **options)


def test_a_trace_of_one_robot_is_no_error_of_another(result):
    motion = fj.load("arm", backend="numpy").simulate(np.zeros(7), np.zeros(7), dt=0.01, duration=0.05)
    viewer = fj.show(motion, result, port=18105, play=False, traces=["tool"])
    try:
        assert len(viewer.stage.traces) == 1  # the humanoid has no tool
    finally:
        viewer.stop()


def test_supports_of_a_transition_are_drawn():
    robot = fj.load("quadruped", backend="numpy")
    q, rest = robot.neutral(), np.zeros(robot.nv)
    q[2] = 0.5
    feet = ["LF_foot", "RF_foot", "LH_foot", "RH_foot"]
    supports = [fj.PointContact(f) for f in feet]
    found = fj.transition(robot, (q, rest), (q, rest), 1.0, supports=supports, root_forces="unactuated",
                          intervals=3, max_iterations=1, points=2)  # fmt: skip
    arrows = found.contact_forces.arrows(0.5)
    agree(arrows[:, 1].sum(0), [0, 0, 9.81 * robot.mass], 1e-6)
    at = [robot.frame_placement(found.q(0.5), f)[:3, 3] for f in feet]
    agree(arrows[:, 0], np.array(at), 1e-9)


@needs_browser
def test_pictures_and_recordings(shown, result, tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    viewer = shown(result)
    with viewer._camera((320, 200)) as shoot:  # one browser for all
        pixels = shoot()
        assert pixels.shape == (200, 320, 3)
        assert in_the_middle(blue(pixels.astype(float)))
        viewer.screenshot(tmp_path / "t.png", t=1.0, size=(320, 200))
        viewer.record(tmp_path / "t.gif", fps=3, size=(320, 200))
        viewer.record(tmp_path / "t.webp", fps=3, size=(160, 100), follow=True)
        if pytest.importorskip("av", reason="av is not installed: pip install 'featherjet[video]'"):
            viewer.record(tmp_path / "t.mp4", fps=3, size=(161, 100))
    assert pillow.open(tmp_path / "t.png").size == (320, 200)
    with pillow.open(tmp_path / "t.gif") as film:
        frames = [np.asarray(film.convert("RGB"), float) for k in range(film.n_frames) if film.seek(k) is None]
        lasting = [film.info["duration"] for k in range(3) if film.seek(k) is None]
    assert len(frames) == 3
    assert sum(lasting) == 1000  # a second
    assert (blue(frames[0]) ^ blue(frames[2])).sum() > 0.05 * blue(frames[0]).sum()
    assert b"ftyp" in (tmp_path / "t.mp4").read_bytes()[:16]


@needs_browser
def test_a_solution_of_optimal_control_plays_in_a_page(tmp_path):
    from featherjet.control import Control, Cost, Phase, Problem, solve

    robot = fj.load("quadruped", backend="compiled")
    q = robot.neutral()
    q[2] = 0.6
    stance = fj.Contacts(robot, [fj.PointContact(f) for f in ("LF_foot", "RH_foot")])
    swing = fj.Contacts(robot, [fj.PointContact(f) for f in ("RF_foot", "LH_foot")])
    effort = [Cost(Control(), 1e-3)]
    phases = [Phase(4, 0.02, effort, stance), Phase(4, 0.02, effort, swing)]
    found = solve(Problem(robot, np.concatenate([q, np.zeros(robot.nv)]), phases, []), iterations=2)
    motion = found.trajectory()
    for k, foot in enumerate(motion.contacts):  # points follow the feet, on the ground and in the air
        at = robot.frame_placement(motion.q[:-1], foot)[:, :3, 3]
        agree(motion.arrows[:-1, k, 0], at, 1e-9)
    viewer = fj.show(found, port=18103, play=False)
    try:
        assert "optimised" in viewer.motions[0].caption
        assert len(viewer.stage.arrows[0].points) == 2  # two feet hold, two swing
        with opened(viewer.url) as page:
            page.wait("document.querySelectorAll('.uplot').length >= 3")
            page.wait("document.body.innerText.includes('optimised, 9 states')")
            come_true(lambda: blue(scene(page)).sum() >= 2000, "the robot does not show")
            assert in_the_middle(blue(scene(page)))
    finally:
        viewer.stop()


@needs_browser
def test_a_page_that_needs_nothing_else(shown, result, tmp_path):
    viewer = shown(result)
    path = viewer.record(tmp_path / "page.html", fps=5)
    viewer.stop()
    with opened(path.as_uri()) as page:
        page.wait("document.querySelector('canvas') !== null")
        come_true(lambda: blue(scene(page)).sum() >= 2000, "the robot does not show")
        before = blue(scene(page))
        come_true(lambda: (before ^ blue(scene(page))).sum() > 0.05 * before.sum(), "the page does not play")
        page.wait("document.querySelectorAll('#curves svg').length == 2")

        def shows(share: float) -> bool:
            left, middle, width = page.script(TRACK)  # which moves while the panel is laid out
            page.click(left + share * width, middle)  # and so pauses it there, when the page is next drawn
            return page.picture() and page.script(f"Math.abs({CURSOR} - {share}) < 0.02")

        for share in (0.25, 0.75):
            come_true(lambda share=share: shows(share), "the cursor does not follow")


def test_recordings_have_known_formats(viewer, tmp_path):
    with pytest.raises(InputError, match=r"t\.avi: recordings are \.gif"):
        viewer.record(tmp_path / "t.avi")
    with pytest.raises(InputError, match=r"ends in \.png"):
        viewer.screenshot(tmp_path / "t.jpg")


def test_no_browser_is_told(viewer, monkeypatch, tmp_path):
    from featherjet.view import browser

    monkeypatch.setattr(browser, "chromium", lambda: None)
    with pytest.raises(browser.NoBrowser, match="install chromium"):
        viewer.screenshot()


@pytest.mark.parametrize("command", [["view", "t.npz", "--port", "18090", "--paused"], ["info", "arm", "--view"]])
def test_the_command_serves_until_it_is_interrupted(command, result, tmp_path):
    result.save(tmp_path / "t.npz")
    environment = {k: x for k, x in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    process = subprocess.Popen(
        [sys.executable, "-m", "featherjet", *command],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        url = next(filter(None, (re.search(r"http://\S+", line) for line in process.stdout)))
        import urllib.request

        with urllib.request.urlopen(url[0], timeout=PATIENCE) as page:
            assert b"<html" in page.read().lower()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "Traceback" not in err


def test_bad_addresses_are_refused(result):
    from featherjet.view.viewer import Viewer

    with pytest.raises(InputError, match=r"cannot serve on 203\.0\.113\.1"):
        Viewer(result, host="203.0.113.1", port=18099)
    with pytest.raises(InputError, match="port: expected"):
        Viewer(result, port=70000)
