"""Transitions in files: .npz, CSV, BVH, pictures, and the command line that makes them."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import featherjet as fj
from featherjet.cli import main, plot
from featherjet.cli import transition as transition_command
from featherjet.errors import InputError
from featherjet.model.io import saved
from helpers import agree, every_kind


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def quick(robot: fj.Robot, **settings) -> fj.Transition:
    rng = np.random.default_rng(2)
    q = robot.random_configuration(rng)
    v, w = 0.3 * rng.normal(size=(2, robot.nv))
    end = robot.integrate(q, 0.5 * rng.uniform(-1, 1, robot.nv))
    return fj.transition(robot, (q, v), (end, w), 0.5, intervals=3, max_iterations=2, points=3, **settings)


# Models as text


@pytest.mark.parametrize("name", ["arm", "humanoid", "panda", "every_kind"])
def test_models_come_back_the_same(name):
    model = every_kind().model if name == "every_kind" else fj.load(name, mimic=name == "panda").model
    again = saved.loads(saved.dumps(model))
    assert again.joint_names == model.joint_names
    assert saved.dumps(again) == saved.dumps(model)
    robots = [fj.Robot(m, backend="numpy") for m in (model, again)]
    q = robots[0].random_configuration(0, 2)
    v = np.ones((2, robots[0].nv))
    np.testing.assert_array_equal(*(r.inverse_dynamics(q, v, v) for r in robots))
    for a, b in zip(*(r.limits() for r in robots), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("text", ["", "{}", '{"joints": 3}', "[1, 2]"])
def test_other_text_is_no_model(text):
    with pytest.raises(InputError, match="not a saved featherjet model"):
        saved.loads(text)


# Saved and loaded


@pytest.mark.parametrize("supports", [False, True])
def test_save_and_load(supports):
    robot = fj.load("quadruped", backend="numpy")
    q, rest = robot.neutral(), np.zeros(robot.nv)
    if supports:
        feet = [fj.PointContact("LF_foot"), fj.SurfaceContact("RH_foot")]
        result = fj.transition(
            robot, (q, rest), (q, rest), 0.5, supports=feet, root_forces="unactuated", intervals=2, points=2
        )
    else:
        result = quick(robot, weights={"LF_KFE": 3.0})
    path = result.save("t.npz")
    assert os.listdir() == ["t.npz"]
    again = fj.Transition.load(path, backend="numpy")
    t = result.times(7)
    for name in ("q", "v", "a", "tau"):
        np.testing.assert_array_equal(getattr(again, name)(t), getattr(result, name)(t))
    assert again.report == result.report
    np.testing.assert_array_equal(again.history, result.history)
    assert again.baselines() == pytest.approx(result.baselines(), rel=1e-12)
    assert again.forces(t).keys() == result.forces(t).keys()
    with np.load(path) as plain:  # anyone can read the samples
        agree(plain["tau"], result.tau(plain["t"]), 1e-12)


def test_clips_go_along():
    robot = fj.load("arm", backend="numpy")
    clips = [fj.Clip(np.linspace(0, 0.1, 5)[:, None] * np.ones(7) + k, 0.02) for k in (0.0, 0.3)]
    result = fj.transition(robot, *clips, 0.3, intervals=1, max_iterations=1)
    again = fj.Transition.load(result.save("t.npz"))
    agree(np.asarray(again.joined().q), np.asarray(result.joined().q), 1e-15)


def test_files_that_are_no_transitions():
    np.savez("states.npz", q=np.zeros(3))
    with pytest.raises(InputError, match=r"states\.npz: not a featherjet transition file: it holds the arrays q"):
        fj.Transition.load("states.npz")
    with pytest.raises(InputError, match="no such file"):
        fj.Transition.load("nowhere.npz")
    result = quick(fj.load("arm", backend="numpy"))
    result.save("t.npz")
    arrays = dict(np.load("t.npz"))
    np.savez("cut.npz", **{**arrays, "control": arrays["control"][:-1]})
    with pytest.raises(InputError, match="arrays do not fit"):
        fj.Transition.load("cut.npz")
    np.savez("part.npz", **{name: x for name, x in arrays.items() if name != "history"})
    with pytest.raises(InputError, match=r"part\.npz: not a featherjet transition file: array 'history' is missing"):
        fj.Transition.load("part.npz")
    about = json.loads(str(arrays["about"]))
    np.savez("less.npz", **{**arrays, "about": json.dumps({k: x for k, x in about.items() if k != "points"})})
    with pytest.raises(InputError, match=r"less\.npz: damaged featherjet transition file \(KeyError\('points'\)\)"):
        fj.Transition.load("less.npz")
    np.savez("new.npz", **{**arrays, "format": "featherjet transition 9"})
    with pytest.raises(InputError, match="its format is 'featherjet transition 9'"):
        fj.Transition.load("new.npz")
    with pytest.raises(InputError, match="cannot be written"):
        result.save("no/such/folder.npz")


# Tables and motion capture


def test_csv():
    result = quick(every_kind(4))
    path = result.to_csv("t.csv", count=11)
    with open(path) as file:
        header, *rows = csv.reader(file)
    numbers = np.array(rows, float)
    nq, nv = result.robot.nq, result.robot.nv
    assert numbers.shape == (11, 1 + nq + 3 * nv)
    assert len(set(header)) == len(header)
    t = numbers[:, 0]
    np.testing.assert_array_equal(numbers[:, 1 : 1 + nq], result.q(t))
    np.testing.assert_array_equal(numbers[:, -nv:], result.tau(t))


class Node:
    """A joint of a BVH file."""

    def __init__(self, name: str, parent: Node | None) -> None:
        self.name, self.parent, self.offset, self.channels = name, parent, np.zeros(3), []


def read_bvh(path: Path) -> tuple[list[Node], np.ndarray, float]:
    """A reader that knows the format and nothing of ours."""
    words = path.read_text().split()
    nodes, stack, at = [], [], 0
    while words[at] != "MOTION":
        word = words[at]
        if word in ("ROOT", "JOINT"):
            nodes.append(Node(words[at + 1], stack[-1] if stack else None))
            pending, at = nodes[-1], at + 2
        elif word == "End":
            pending, at = None, at + 2
        elif word == "{":
            stack.append(pending)
            at += 1
        elif word == "}":
            stack.pop()
            at += 1
        elif word == "OFFSET":
            if stack[-1] is not None:
                stack[-1].offset = np.array(words[at + 1 : at + 4], float)
            at += 4
        elif word == "CHANNELS":
            n = int(words[at + 1])
            stack[-1].channels = words[at + 2 : at + 2 + n]
            at += 2 + n
        else:
            at += 1
    assert words[at : at + 2] == ["MOTION", "Frames:"]
    frames, dt = int(words[at + 2]), float(words[at + 5])
    return nodes, np.array(words[at + 6 :], float).reshape(frames, -1), dt


def pose(nodes: list[Node], row: np.ndarray) -> dict[str, np.ndarray]:
    """Where every joint is in the world, (4, 4)."""
    axes = {"X": (1, 2), "Y": (2, 0), "Z": (0, 1)}
    found, at = {}, 0
    for node in nodes:
        T = np.eye(4)
        T[:3, 3] = node.offset
        for channel in node.channels:
            x = row[at]
            at += 1
            if channel.endswith("position"):
                T["XYZ".index(channel[0]), 3] = x
            else:
                i, j = axes[channel[0]]
                R = np.eye(4)
                c, s = np.cos(np.radians(x)), np.sin(np.radians(x))
                R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
                T = T @ R
        found[node.name] = T if node.parent is None else found[node.parent.name] @ T
    assert at == len(row)
    return found


@pytest.mark.parametrize("name", ["arm", "humanoid", "every_kind"])
@pytest.mark.parametrize("up, scale", [("y", 100.0), ("z", 1.0)])
def test_bvh_moves_as_the_robot_does(name, up, scale):
    robot = every_kind(5) if name == "every_kind" else fj.load(name, backend="numpy")
    result = quick(robot)
    nodes, rows, dt = read_bvh(result.to_bvh("t.bvh", fps=20.0, up=up, scale=scale))
    assert len(rows) == 11
    assert dt == pytest.approx(0.05)
    turn = np.eye(3) if up == "z" else np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
    rest = robot.forward_kinematics(robot.neutral())
    for t, row in zip(np.linspace(0, 0.5, 11), rows, strict=True):
        found = pose(nodes, row)
        for joint, T, T0 in zip(robot.joint_names, robot.forward_kinematics(result.q(t)), rest, strict=True):
            agree(found[joint][:3, 3], scale * turn @ T[:3, 3], 1e-6, joint, floor=scale)
            agree(found[joint][:3, :3], turn @ T[:3, :3] @ T0[:3, :3].T @ turn.T, 1e-6, joint)


def test_bvh_has_the_clips_too():
    robot = fj.load("arm", backend="numpy")
    clip = fj.Clip(np.linspace(0, 0.1, 6)[:, None] * np.ones(7), 0.02)
    result = fj.transition(robot, clip, (0.3 * np.ones(7), np.zeros(7)), 0.2, intervals=1, max_iterations=1)
    assert len(read_bvh(result.to_bvh("a.bvh", fps=50.0))[1]) == 5 + 11
    assert len(read_bvh(result.to_bvh("b.bvh", fps=50.0, joined=False))[1]) == 11


def test_plot():
    path = Path("t.png")
    quick(fj.load("humanoid", backend="numpy")).plot(path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 20_000
    assert os.listdir() == ["t.png"]


# The command line


@pytest.fixture
def task() -> list[str]:
    Path("a.json").write_text('{"q": {"joint2": 0.5, "joint4": -1.2, "joint6": 0.8}}')
    Path("b.json").write_text('{"q": [0.9, 0.9, 0.3, -0.7, 0.2, 0.1, 0.4], "v": {"joint1": 0.2}}')
    return ["transition", "arm", "--from", "a.json", "--to", "b.json", "--duration", "0.8", "--out", "t.npz"]


def test_the_commands(task, capsys):
    assert main([*task, "--intervals", "4", "--csv", "t.csv", "--bvh", "t.bvh"]) == 0
    out, err = capsys.readouterr()
    assert "of a minimum jerk's\n" in out
    assert "beyond the robot's velocity limits" in out
    assert "t.npz: written" in out
    assert not err
    result = fj.Transition.load("t.npz")
    assert result.report.success
    assert result.v(0.8)[0] == pytest.approx(0.2)
    assert result.q(0.0)[3] == pytest.approx(-1.2)
    assert main(["plot", "t.npz"]) == 0
    Path("t.png").write_text("mine")
    assert main(["plot", "t.npz"]) == 2
    assert "exists; --overwrite" in capsys.readouterr().err
    assert Path("t.png").read_text() == "mine"
    assert main(["plot", "t.npz", "--overwrite"]) == 0
    Path("link.png").symlink_to("t.npz")
    assert main(["plot", "t.npz", "--out", "link.png", "--overwrite"]) == 2
    assert "is the input itself" in capsys.readouterr().err
    Path("link.png").unlink()
    assert sorted(os.listdir()) == ["a.json", "b.json", "t.bvh", "t.csv", "t.npz", "t.png"]
    assert main(task) == 2  # it exists
    assert "--overwrite" in capsys.readouterr().err


def test_files_that_appear_during_the_search_stay(task, capsys, monkeypatch):
    """And the motion is not lost."""
    search, load = transition_command.search, plot.load_motion

    def slow(*args):
        for name in names:
            Path(name).write_text("somebody else's")
        return search(*args)

    monkeypatch.setattr(transition_command, "search", slow)
    short = [*task, "--intervals", "2", "--iterations", "2", "--csv", "t.csv", "--bvh", "t.bvh"]
    names = ["t.npz"]
    assert main(short) == 2
    said = capsys.readouterr().err
    assert "t.npz: exists; --overwrite replaces it; the motion is in t-" in said
    (kept,) = Path().glob("t-*.npz")
    assert fj.Transition.load(kept).duration == 0.8
    assert str(kept) in said
    for name in ("t.csv", "t.bvh"):
        names = [name]
        assert main([*short, "--overwrite"]) == 1, "replaced as asked; not converged"
        for path in Path().glob("t.*"):
            path.unlink()
        assert main(short) == 2
        assert f"{name}: exists; --overwrite" in capsys.readouterr().err
        assert Path(name).read_text() == "somebody else's"

    def slowly(path):
        Path("t.png").write_text("somebody else's")
        return load(path)

    monkeypatch.setattr(plot, "load_motion", slowly)
    assert main(["plot", "t.npz"]) == 2
    assert "t.png: exists; --overwrite" in capsys.readouterr().err
    assert Path("t.png").read_text() == "somebody else's"


def test_all_options(task, capsys):
    more = "--weight joint1=2 --target tool=0.4,0.5,0.3,0.9 --limit velocity --intervals 5 --tolerance 1e-2".split()
    main([*task, *more, "--solver", "slsqp", "--degree", "4", "--iterations", "40"])
    out = capsys.readouterr().out
    assert "of a minimum jerk's, which ignores conditions\n" in out
    assert "velocity limits" not in out
    result = fj.Transition.load("t.npz")
    assert result.weights[0] == 2.0
    assert result.spline.degree == 4
    assert result.report.solver == "slsqp"
    agree(result.robot.frame_placement(result.q(0.4), "tool")[:3, 3], [0.5, 0.3, 0.9], 1e-5)


def test_clips_and_npz_files(task, capsys):
    robot = fj.load("arm", backend="numpy")
    np.savez("a.npz", q=np.linspace(0, 0.1, 5)[:, None] * np.ones(7), dt=0.02)
    task[task.index("a.json")] = "a.npz"
    assert main([*task, "--intervals", "2", "--iterations", "3"]) == 1  # not converged in three
    agree(fj.Transition.load("t.npz").v(0.0), np.full(robot.nv, 1.25), 1e-9)


@pytest.mark.parametrize(
    "text, says",
    [
        ("{", "is not JSON"), ("[1]", "expected an object"), ('{"v": [0]}', "has no 'q'"),
        ('{"q": [1, 2]}', "expected shape"), ('{"q": {"joint9": 1}}', "unknown joint 'joint9'"),
        ('{"q": {"joint1": [1, 2]}}', "expected 1 finite coordinates"), ('{"q": [], "x": 1}', "'x' is not known"),
        ('{"q": {}, "v": {"joint1": [1, 2]}}', "expected 1 numbers"),
        ('{"q": [[0, 0, 0, 0, 0, 0, 0]], "dt": 0.1}', "two samples"),
        ('{"q": [[0, 0, 0, 0, 0, 0, 0]]}', "a.json: q: expected one state"),
        ('{"q": [NaN, 0, 0, 0, 0, 0, 0]}', "a.json: q[0] is nan"),
        ('{"q": {}, "v": {"joint1": "fast"}}', "v: joint 'joint1': expected 1 numbers, got 'fast'"),
        ('{"q": {}, "v": [1, 2]}', "a.json: v: expected shape"),
    ],
)  # fmt: skip
def test_bad_state_files(task, text, says, capsys):
    Path("a.json").write_text(text)
    assert main(task) == 2
    out, err = capsys.readouterr()
    assert says in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert not out
    assert not Path("t.npz").exists()


@pytest.mark.parametrize(
    "more, says",
    [
        (["--weight", "joint9=1"], "unknown joint"), (["--support", "tool"], "in different places"),
        (["--root-forces", "unactuated"], "no floating base"), (["--csv", "no/where.csv"], "no such directory"),
        (["--degree", "2"], "degree: expected"), (["--csv", "t.npz"], "give each its own file"),
    ],
)  # fmt: skip
def test_bad_options(task, more, says, capsys):
    assert main([*task, *more]) == 2
    assert says in capsys.readouterr().err
    assert not Path("t.npz").exists()


@pytest.mark.parametrize(
    "more", [["--duration", "0"], ["--weight", "joint1"], ["--target", "tool=1,2"], ["--limit", "x"]]
)
def test_wrong_usage(task, more, capsys):
    assert main([*task, *more]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: argument --")
    assert said.endswith("(see: featherjet transition --help)\n")
    assert said.count("\n") == 1


def test_other_files_are_refused(capsys):
    for command in ("view", "plot"):
        assert main([command, "nowhere.npz"]) == 2
        assert "no such file" in capsys.readouterr().err
    quick(fj.load("arm", backend="numpy")).save("t.npz")
    for name, says in (("t.pdf", "pictures are PNG files"), ("no/where.png", "no such directory")):
        assert main(["plot", "t.npz", "--out", name]) == 2
        assert says in capsys.readouterr().err


def test_files_of_motions_say_what_they_are():
    from featherjet.cli.view import load_motion

    robot = fj.load("arm", backend="numpy")
    assert isinstance(load_motion(quick(robot).save("t.npz")), fj.Transition)
    simulated = robot.simulate(robot.neutral(), np.zeros(7), dt=0.01, duration=0.02, progress=False)
    assert isinstance(load_motion(simulated.save("s.npz")), fj.Trajectory)
    with pytest.raises(InputError, match=r"s\.npz: not a featherjet transition file: its format is 'featherjet traj"):
        fj.Transition.load("s.npz")
    with pytest.raises(InputError, match=r"t\.npz: not a featherjet trajectory file"):
        fj.Trajectory.load("t.npz")


def test_interrupted_it_keeps_the_best(task):
    """A real Ctrl-C in a real process, once the progress bar has told of an energy."""
    long = ["--iterations", "1000000", "--tolerance", "1e-300", "--intervals", "300"]
    command = [sys.executable, "-m", "featherjet", *task, *long]
    terminal, end = pty.openpty()
    environment = {**os.environ, "FEATHERJET_BACKEND": "numpy", "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=end, text=True, env=environment)
    os.close(end)
    err = b""
    while b"energy" not in err:
        err += os.read(terminal, 1000)
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # how Linux tells that the other end was closed
        while more := os.read(terminal, 1000):
            err += more
    os.close(terminal)
    out = process.communicate(timeout=300)[0]
    assert process.returncode == 130, err
    assert b"the best motion so far was kept" in err
    assert b"Traceback" not in err
    result = fj.Transition.load("t.npz")
    assert result.report.interrupted
    assert result.energy < result.report.initial_energy
    assert sorted(os.listdir()) == ["a.json", "b.json", "t.npz"]
    assert "t.npz: written" in out
