"""The page that `featherjet view` serves, in a real browser: it loads, shows the robot, and the slider moves it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import featherjet as fj
from browser import PATIENCE, chromium, opened
from featherjet.errors import InputError
from featherjet.math import rotations as so3
from featherjet.view.shapes import capsules, locate, meshes
from helpers import agree, error

pytest.importorskip("viser", reason="viser is not installed: pip install 'featherjet[viewer]'")
needs_browser = pytest.mark.skipif(chromium() is None, reason="no chromium here: apt-get install chromium")

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
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    yield made
    made.stop()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def placed(viewer) -> np.ndarray:
    """Where the page's links are: (njoints, 4, 4)."""
    T = np.tile(np.eye(4), (len(viewer.links), 1, 1))
    T[:, :3, :3] = so3.matrix_from_quaternion(np.array([link.wxyz for link in viewer.links]))
    T[:, :3, 3] = [link.position for link in viewer.links]
    return T


def come_true(condition: Callable[[], object], otherwise: str) -> None:
    """Wait for as long as it takes, within reason."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, otherwise
        time.sleep(0.05)


def blue(pixels: np.ndarray) -> np.ndarray:
    """Where limbs are: a blue that nothing else on the page has, in the part beside the panel."""
    r, g, b = np.moveaxis(pixels[:, :850], -1, 0)
    return (b > r + 25) & (b > g + 8) & (b > 60)


@needs_browser
def test_the_page_shows_the_robot_and_the_slider_moves_it(viewer, result, tmp_path):
    with opened(viewer.url) as page:
        page.wait("document.querySelector('canvas') !== null")
        page.wait(f"{SLIDER} !== null")
        page.wait(f"document.body.innerText.includes('featherjet: {result.robot.name}')")
        come_true(lambda: blue(page.pixels()).sum() >= 2000, "the robot does not show")
        before = page.pixels()
        page.wait("document.body.innerText.includes('energy')")
        page.wait("document.querySelectorAll('.uplot').length >= 2")  # both curves
        assert float(page.script(f"{SLIDER}.getAttribute('aria-valuenow')")) == 0.0
        agree(placed(viewer), result.robot.forward_kinematics(result.q(0.0)), 1e-6)

        page.script(f"{SLIDER}.focus()")
        page.press("End", 35)
        page.wait(f"{SLIDER}.getAttribute('aria-valuenow') == {result.duration}")
        come_true(lambda: abs(viewer.slider.value - result.duration) <= 1e-9, "the slider does not reach the server")
        there = result.robot.forward_kinematics(result.q(result.duration))
        come_true(lambda: error(placed(viewer), there) <= 1e-6, "the robot does not follow the slider")

        def changed() -> int:
            return (blue(before) ^ blue(page.pixels())).sum()

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
        assert made.arrows is not None
        start, end = np.moveaxis(np.asarray(made.arrows.points), 1, 0)
        agree(start, motion.arrows[-1, :, 0], 1e-6)
        agree((end - start) * 9.81 * robot.mass, motion.forces[-1].reshape(2, 3), 1e-5)
        assert np.abs(motion.forces[-1]).max() > 1.0
    finally:
        made.stop()


def test_playing_goes_on_and_round(viewer, result):
    viewer.playing.value = True
    seen = set()
    come_true(lambda: seen.add(viewer.slider.value) or len(seen) >= 6, "the motion does not play")
    assert all(0 <= t <= result.duration for t in seen)


@pytest.mark.parametrize("name", ["arm", "quadruped", "humanoid"])
def test_capsules_reach_from_joint_to_joint(name):
    model = fj.load(name).model
    found = capsules(model)
    for i, joint in enumerate(model.joints):
        mine = [c for c in found if c.joint == i]
        assert mine
        assert all(c.radius > 0 for c in mine)
        if joint.parent >= 0:
            ends = [c.end for c in found if c.joint == joint.parent]
            assert any(np.allclose(joint.placement[:3, 3], end) for end in ends)


def test_meshes_are_found():
    pytest.importorskip("trimesh")
    path = Path(fj.robots()["solo12"])
    model = fj.load(path, root="free").model
    found = meshes(model, path)
    assert len(found) >= 8
    assert all(len(m.mesh.vertices) > 10 for m in found)
    assert {m.joint for m in found} <= set(range(model.njoints))
    assert locate("package://nowhere/nothing.stl", path) is None


def test_shapes_of_a_urdf(tmp_path):
    pytest.importorskip("trimesh")
    path = tmp_path / "box.urdf"
    path.write_text(
        """<robot name="r"><link name="base"/><link name="a"><visual><origin xyz="0 0 1"/><geometry><box size="1 2 3"/>
        </geometry></visual></link><link name="b"><visual><geometry><mesh filename="lost.stl"/></geometry></visual>
        <collision><geometry><sphere radius="0.5"/></geometry></collision></link>
        <joint name="j" type="continuous"><parent link="base"/><child link="a"/></joint>
        <joint name="k" type="continuous"><parent link="a"/><child link="b"/></joint></robot>"""
    )
    found = meshes(fj.load(path).model, path)
    assert [m.joint for m in found] == [0, 1]
    np.testing.assert_allclose(found[0].placement[:3, 3], [0, 0, 1])
    np.testing.assert_allclose(found[0].mesh.extents, [1, 2, 3])
    np.testing.assert_allclose(found[1].mesh.extents, [1, 1, 1], atol=0.01)


def test_the_command_serves_until_it_is_interrupted(result, tmp_path):
    path = result.save(tmp_path / "t.npz")
    command = [sys.executable, "-m", "featherjet", "view", str(path), "--port", "18090", "--paused"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = re.search(r"http://\S+", line)
        assert url, line
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
