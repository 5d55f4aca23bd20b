"""The command line: what it prints, what it writes, how it fails, and that it leaves nothing behind."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import featherjet as fj
from featherjet.cli import COMMANDS, demo, main
from featherjet.cli import check as check_command
from featherjet.cli.outline import outline
from helpers import random_state

ANSI = "\x1b"

MASSLESS = """<robot name="hollow"><link name="base"/>
  <link name="arm"><inertial>
    <mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tip"/>
  <joint name="shoulder" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint>
  <joint name="wrist" type="revolute"><parent link="arm"/><child link="tip"/><origin xyz="0.5 0 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""
TWISTED = MASSLESS.replace('ixx="1" iyy="1"', 'ixx="1" iyy="9"').replace('"hollow"', '"[bold]twisted"')
MIMIC = MASSLESS.replace('velocity="1"/>', 'velocity="1"/><mimic joint="shoulder" multiplier="-2" offset="0.5"/>')


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FEATHERJET_DEBUG", raising=False)


@pytest.fixture
def states(tmp_path) -> Path:
    """Five states of the built-in arm, with forces."""
    path = tmp_path / "states.npz"
    assert main(["sample", "arm", "--size", "5", "--fext", "--out", str(path)]) == 0
    return path


def write(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def alone(*files: str) -> bool:
    """Whether these files, and no leftovers, are in the folder."""
    return sorted(os.listdir()) == sorted(files)


# Front door


@pytest.mark.parametrize("command", [[], *([c.__name__.split(".")[-1]] for c in COMMANDS)])
def test_help_shows_examples(command, capsys):
    assert main([*command, "--help"]) == 0
    out = capsys.readouterr().out
    assert "examples:" in out
    assert " ".join(["usage: featherjet", *command]) in out


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["--nonsense"], ["info"], ["check", "arm", "--samples", "0"], ["check", "arm", "--tolerance", "nan"],
     ["derive", "arm", "--out", "x.npz"], ["info", "arm", "--root", "wheels"], ["demo", "--size", "many"],
     ["info", "arm", "\x1b[2J"]],
)  # fmt: skip
def test_wrong_usage_gives_one_line(arguments, capsys):
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.endswith(" --help)\n")
    assert said.strip().isprintable(), "one line"


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"featherjet {fj.__version__}"


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["info", "quadrupet"], "did you mean: quadruped"),
        (["info", "nowhere.urdf"], "no such file"),
        (["info", "arm", "--root", "free"], "omit --root"),
        (["check", "broken.urdf"], "broken.urdf"),
        (["demo", "--robot", "nobody"], "unknown robot 'nobody'"),
    ],
)
def test_an_error_is_one_line_and_exit_code_2(arguments, says, capsys):
    write("broken.urdf", "<robot name='x'><link")
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert says in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert not out
    assert alone("broken.urdf")


@pytest.mark.parametrize("flag, variable", [(["--debug"], None), ([], "1")])
def test_debug_shows_where_an_error_arose(flag, variable, capsys, monkeypatch):
    if variable:
        monkeypatch.setenv("FEATHERJET_DEBUG", variable)
    assert main(["info", "nowhere.urdf", *flag]) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("error, code", [(KeyboardInterrupt(), 130), (MemoryError(), 2), (OSError(28, "full"), 2)])
def test_what_befalls_a_command_becomes_an_exit_code(error, code, capsys, monkeypatch):
    def strike(*_, **__):
        raise error

    monkeypatch.setattr("featherjet.cli.info.load_robot", strike)
    assert main(["info", "arm"]) == code
    assert "Traceback" not in capsys.readouterr().err


def test_sigterm_unwinds_like_ctrl_c_and_the_old_handler_returns(monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("featherjet.cli.info.load_robot", lambda _: os.kill(os.getpid(), signal.SIGTERM))
    assert main(["info", "arm"]) == 130
    assert signal.getsignal(signal.SIGTERM) is before


# info, robots


def test_info_shows_every_joint_and_the_totals(capsys):
    assert main(["info", "quadruped", "--frames"]) == 0
    out, err = capsys.readouterr()
    robot = fj.load("quadruped")
    assert all(f"{name} " in out for name in (*robot.joint_names, *robot.frame_names))
    assert f"13 joints, nq {robot.nq}, nv {robot.nv}, 30 kg, {len(robot.model.frames)} frames" in out
    assert "└─ RH_HAA" in out
    assert "0-6  0-5" in out
    assert "-0.9 to 0.9" in out
    assert ANSI not in out
    assert not err


@pytest.mark.parametrize(
    "document, says",
    [
        (MASSLESS, ["no mass on joint wrist", "no forward dynamics"]),
        (TWISTED, ["twisted.urdf:2: link 'arm'", "triangle inequality", "[bold]twisted: 2 joints"]),
        (MASSLESS.replace('"-1" upper', '"2" upper'), ["limit above upper on joint wrist", "limit 2 above"]),
        (MASSLESS.replace('"-1" upper', '"1" upper'), ["lower limit equal to upper on joint wrist"]),
    ],
)  # fmt: skip
def test_info_warns(document, says, capsys):
    assert main(["info", write("twisted.urdf", document)]) == 0
    out = capsys.readouterr().out
    assert all(text in out for text in says), out


def test_info_strict_refuses_and_mimic_shows_the_leader(capsys):
    assert main(["info", write("twisted.urdf", TWISTED), "--strict"]) == 2
    assert "triangle inequality" in capsys.readouterr().err
    assert main(["info", write("mimic.urdf", MIMIC), "--mimic"]) == 0
    assert "revolute = -2 shoulder +0.5" in capsys.readouterr().out


@pytest.mark.parametrize("model", [fj.models.chain(600), fj.models.tree(300), fj.models.random_tree(200, seed=1)])
def test_outline_keeps_the_order_and_stays_narrow(model):
    rows = list(outline(model))
    assert [row.name for row in rows] == list(model.joint_names)
    assert max(len(row.marks) for row in rows) < 60
    assert sum(row.mass for row in rows) == pytest.approx(model.mass)


def test_outline_marks_branches():
    b = fj.ModelBuilder("y")
    for name, parent in [("a", None), ("b", "a"), ("c", "b"), ("d", "c"), ("e", "b"), ("f", None)]:
        b.add_joint(name, "revolute", parent)
        b.add_body(name, 1.0)
    drawn = [row.marks + row.name for row in outline(b.build())]
    assert drawn == ["├─ a", "│  b", "│  ├─ c", "│  │  d", "│  └─ e", "└─ f"]


def test_robots_lists_names_that_load(capsys):
    assert main(["robots"]) == 0
    names = [row.split()[0] for row in capsys.readouterr().out.splitlines()[1:]]
    assert names == list(fj.robots())
    assert main(["robots", "QUADRU"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[0] == "quadruped"
    assert main(["robots", "zzz"]) == 1


# check


def test_check_passes_and_says_what_of(capsys):
    assert main(["check", "quadruped", "--samples", "3", "--seed", "5"]) == 0
    out = capsys.readouterr().out
    assert out.count("pass\n") == 6
    assert all(name in out for name in ("dtau_dq", "dtau_dv", "dtau_da", "da_dq", "da_dv", "da_dtau"))
    assert "passed: quadruped, 3 states" in out


def test_check_fails_where_a_derivative_is_wrong(capsys, monkeypatch):
    right = fj.Robot.inverse_dynamics_derivatives

    def wrong(self, *args, **kwargs):
        d = right(self, *args, **kwargs)
        return d._replace(dtau_dv=d.dtau_dv * (1 + 1e-9))

    monkeypatch.setattr(fj.Robot, "inverse_dynamics_derivatives", wrong)
    assert main(["check", "arm", "--samples", "2"]) == 1
    out, err = capsys.readouterr()
    (row,) = [row for row in out.splitlines() if "FAIL" in row]
    assert row.split()[:3] == ["dtau_dv", "1.0e-09", "1e-11"]
    assert err.startswith("failed: ")
    assert main(["check", "arm", "--samples", "2", "--tolerance", "1e-8"]) == 0


def test_check_of_a_singular_robot_still_shows_inverse_dynamics(capsys):
    assert main(["check", write("hollow.urdf", MASSLESS)]) == 1
    out, err = capsys.readouterr()
    assert out.count("pass\n") == 3
    assert "da_dq" not in out
    assert "no forward dynamics" in err
    assert "singular" in err


def test_a_nan_is_the_worst_error_and_never_passes(capsys):
    good, bad = fj.verify.Finding("da_dq", 1e-16, 0), fj.verify.Finding("da_dq", np.nan, 1)
    assert check_command.worst([[good], [bad], [good]]) == [bad]
    assert not check_command.report([bad], 1.0)


def test_physics_warnings_are_lines_and_each_comes_once(capsys):
    main(["check", write("twisted.urdf", TWISTED), "--samples", "1"])
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert sum("triangle inequality" in line for line in lines) == 1
    assert len({*lines}) == len(lines)


# sample, derive


def test_derive_gives_what_the_robot_gives(states, capsys):
    assert main(["derive", "arm", "--states", str(states), "--out", "d.npz"]) == 0
    assert alone("states.npz", "d.npz")
    robot, given, out = fj.load("arm"), np.load(states), dict(np.load("d.npz"))
    q, v, a, tau, fext = (given[name] for name in ("q", "v", "a", "tau", "fext"))
    expected = {
        "tau": robot.inverse_dynamics(q, v, a, fext),
        "a": robot.forward_dynamics(q, v, tau, fext),
        **robot.inverse_dynamics_derivatives(q, v, a, fext)._asdict(),
        **robot.forward_dynamics_derivatives(q, v, tau, fext)._asdict(),
        "bias": robot.bias(q, v),
        "coriolis_matrix": robot.coriolis_matrix(q, v),
        "kinetic_energy": robot.kinetic_energy(q, v),
        "centroidal_momentum": robot.centroidal_momentum(q, v),
        **{
            name: getattr(robot, name)(q)
            for name in ("mass_matrix", "gravity", "potential_energy", "center_of_mass", "centroidal_map")
        },
    }
    assert set(out) == set(expected)
    for name, x in expected.items():
        np.testing.assert_array_equal(out[name], x, err_msg=name)
    np.testing.assert_allclose(out["a"], a, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "w"])
def test_derive_second_order(weighted, capsys):
    robot = fj.load("arm")
    s, w = random_state(robot, 3), np.linspace(-1, 1, 3 * robot.nv).reshape(3, robot.nv)
    np.savez("in.npz", q=s.q, v=s.v, a=s.a, tau=s.v, fext=s.fext, **({"w": w} if weighted else {}))
    assert main(["derive", "arm", "--states", "in.npz", "--out", "d.npz", "--order", "2"]) == 0
    assert "not used" not in capsys.readouterr().err
    out = np.load("d.npz")
    for of, name, third in (("tau", "inverse_dynamics", s.a), ("a", "forward_dynamics", s.v)):
        expected = (
            getattr(robot, f"{name}_hessian")(s.q, s.v, third, w, s.fext)
            if weighted
            else getattr(robot, f"{name}_second_derivatives")(s.q, s.v, third, s.fext)
        )
        for block, x in expected._asdict().items():
            np.testing.assert_array_equal(out[f"{of}_{block}"], x, err_msg=block)
    assert {"tau", "da_dq", "mass_matrix"} < set(out.files)


@pytest.mark.parametrize("given, absent", [("a", "da_dq"), ("tau", "dtau_dq")])
def test_derive_of_one_side_only(states, given, absent):
    with np.load(states) as x:
        np.savez("one.npz", q=x["q"].astype(np.float32), v=x["v"], **{given: x[given]})
    assert main(["derive", "arm", "--states", "one.npz", "--out", "d.npz"]) == 0
    out = np.load("d.npz")
    assert absent not in out.files
    assert given not in out.files
    assert {"mass_matrix", "bias"} < set(out.files)


def test_derive_in_chunks_is_derive_at_once(states, monkeypatch):
    assert main(["derive", "arm", "--states", str(states), "--out", "once.npz"]) == 0
    monkeypatch.setattr("featherjet.cli.derive.ENTRIES", 2 * 49)
    assert main(["derive", "arm", "--states", str(states), "--out", "chunks.npz"]) == 0
    once, chunks = np.load("once.npz"), np.load("chunks.npz")
    for name in once.files:
        np.testing.assert_allclose(chunks[name], once[name], rtol=1e-13, atol=1e-15)


def bad_states(kind: str) -> dict:
    n = fj.load("arm").nv
    good = {"q": np.zeros((3, n)), "v": np.zeros((3, n)), "a": np.zeros((3, n))}
    return {
        "no q": {k: good[k] for k in "va"},
        "no a": {k: good[k] for k in "qv"},
        "one state": {k: x[0] for k, x in good.items()},
        "few v": good | {"v": np.zeros((2, n))},
        "wide a": good | {"a": np.zeros((3, n + 1))},
        "flat fext": good | {"fext": np.zeros((3, n * 6))},
        "nan": good | {"a": np.full((3, n), np.nan)},
        "complex": good | {"v": np.zeros((3, n), complex)},
        "text": good | {"v": np.full((3, n), "x")},
        "empty": {k: x[:0] for k, x in good.items()},
        "objects": good | {"v": np.full((3, n), None)},
        "scalar q": good | {"q": np.float64(1)},
    }[kind]


@pytest.mark.parametrize(
    "kind, says",
    [
        ("no q", "has no array 'q'; it has: v, a"),
        ("no a", "needs a (for inverse dynamics), tau"),
        ("one state", "q: expected shape"),
        ("few v", "v: expected shape (3, 7), that is (N, nv) of arm; got (2, 7)"),
        ("wide a", "a: expected shape (3, 7)"),
        ("flat fext", "fext: expected shape (3, 7, 6)"),
        ("nan", "a[0, 0] is nan"),
        ("complex", "expected real numbers"),
        ("text", "expected real numbers"),
        ("empty", "holds no states"),
        ("objects", "pickled objects are never read"),
        ("scalar q", "q: expected shape"),
    ],
)
def test_derive_refuses_bad_states(kind, says, capsys):
    np.savez("in.npz", **bad_states(kind))
    assert main(["derive", "arm", "--states", "in.npz", "--out", "d.npz"]) == 2
    assert says in capsys.readouterr().err
    assert alone("in.npz")


@pytest.mark.parametrize("content", ["absent", "folder", "text", "truncated", "npy", "pickle", "other zip"])
def test_derive_refuses_what_is_no_states_file(content, states, capsys):
    path = Path("in.npz")
    if content == "folder":
        path.mkdir()
    elif content == "text":
        path.write_text("q = 0")
    elif content == "truncated":
        path.write_bytes(states.read_bytes()[:-200])
    elif content == "npy":
        np.save("in.npy", np.zeros(3))
        os.rename("in.npy", path)
    elif content == "pickle":
        path.write_bytes(np.array([{}], dtype=object).dumps())
    elif content == "other zip":
        import zipfile

        with zipfile.ZipFile(path, "w") as z:
            z.writestr("q", "hello")
    assert main(["derive", "arm", "--states", "in.npz", "--out", "d.npz"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: in.npz: ")
    assert not Path("d.npz").exists()
    assert len(os.listdir()) == (1 if content == "absent" else 2)


def test_derive_refuses_quaternions_that_are_not_unit(capsys):
    main(["sample", "quadruped", "--size", "4", "--out", "in.npz"])
    x = dict(np.load("in.npz"))
    x["q"][2, 3:7] = 0
    np.savez("in.npz", **x)
    assert main(["derive", "quadruped", "--states", "in.npz", "--out", "d.npz"]) == 2
    assert "at sample (2,)" in capsys.readouterr().err


def test_derive_mentions_arrays_it_does_not_use(states, capsys):
    np.savez("more.npz", **np.load(states), f_ext=np.zeros(3))
    assert main(["derive", "arm", "--states", "more.npz", "--out", "d.npz"]) == 0
    assert "not used: f_ext" in capsys.readouterr().err


def test_derive_without_forward_dynamics(capsys):
    robot = write("hollow.urdf", MASSLESS)
    assert main(["sample", robot, "--size", "3", "--out", "both.npz"]) == 0
    assert main(["derive", robot, "--states", "both.npz", "--out", "d.npz"]) == 2
    assert "leave tau out of the states" in capsys.readouterr().err
    assert main(["sample", robot, "--size", "3", "--no-tau", "--out", "one.npz"]) == 0
    assert main(["derive", robot, "--states", "one.npz", "--out", "d.npz"]) == 0
    assert alone("hollow.urdf", "both.npz", "one.npz", "d.npz")


def test_overwriting_needs_a_word(states, capsys):
    before = states.read_bytes()
    for command in (["sample", "arm"], ["derive", "arm", "--states", str(states)]):
        target = "d.npz" if command[0] == "derive" else str(states)
        Path("d.npz").write_text("mine")
        assert main([*command, "--out", target]) == 2
        assert "exists; --overwrite replaces it" in capsys.readouterr().err
    assert Path("d.npz").read_text() == "mine"
    assert states.read_bytes() == before
    assert main(["derive", "arm", "--states", str(states), "--out", "d.npz", "--overwrite"]) == 0
    assert np.load("d.npz")["tau"].shape == (5, 7)


@pytest.mark.parametrize(
    "out, says",
    [("states.npz", "is the input itself"), ("link.npz", "is the input itself"),
     ("no/such/d.npz", "no such directory"), ("folder", "is a directory"),
     ("states.npz/d.npz", "no such directory")],
)  # fmt: skip
def test_derive_refuses_bad_targets(states, out, says, capsys):
    Path("folder").mkdir()
    Path("link.npz").symlink_to("states.npz")
    before = states.read_bytes()
    assert main(["derive", "arm", "--states", "states.npz", "--out", out, "--overwrite"]) == 2
    assert says in capsys.readouterr().err
    assert states.read_bytes() == before
    assert alone("states.npz", "folder", "link.npz")


@pytest.mark.parametrize("where", ["tempfile.TemporaryFile", "os.link", "os.fsync", "shutil.copyfileobj"])
def test_a_system_that_refuses_leaves_nothing(states, where, capsys, monkeypatch):
    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(where, refuse)
    assert main(["derive", "arm", "--states", str(states), "--out", "d.npz"]) == 2
    assert capsys.readouterr().err.endswith("cannot be written (No space left on device)\n")
    assert alone("states.npz")


def test_a_failure_keeps_the_old_output(states, monkeypatch):
    Path("d.npz").write_text("old")
    monkeypatch.setattr("featherjet.cli.derive.everything", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):  # a bug is not disguised as the user's error
        main(["derive", "arm", "--states", str(states), "--out", "d.npz", "--overwrite"])
    assert Path("d.npz").read_text() == "old"
    assert alone("states.npz", "d.npz")


# demo


def test_demo_verifies_and_draws(capsys):
    assert main(["demo", "--size", "20", "--out", "pictures"]) == 0
    out = capsys.readouterr().out
    assert out.count("20 x 18 x 18") == 6
    for name in ("inverse", "forward"):
        path = Path(f"pictures/{name}_dynamics_derivatives.png")
        assert str(path) in out
        assert path.read_bytes().startswith(b"\x89PNG")
    assert len(os.listdir("pictures")) == 2


def test_demo_fails_where_a_derivative_is_wrong(capsys, monkeypatch):
    right = demo.derive
    monkeypatch.setattr(demo, "derive", lambda *x: right(*x) | {"da_dv": 1.001 * right(*x)["da_dv"]})
    assert main(["demo", "--size", "3", "--robot", "arm"]) == 1
    assert "disagrees with complex step" in capsys.readouterr().err


def test_demo_without_matplotlib_verifies_and_says_how_to_get_pictures(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["demo", "--size", "3", "--robot", "arm"]) == 0
    out = capsys.readouterr().out
    assert "da_dtau" in out
    assert "no pictures: drawing pictures needs matplotlib: pip install 'featherjet[plots]'" in out
    assert out.endswith("next: featherjet view arm\n")


def test_limbs_are_the_branches():
    from featherjet.model.names import coordinate_names
    from featherjet.view.matrices import limbs

    model = fj.models.quadruped()
    assert limbs(model) == [("root", 0, 6), ("LF", 6, 9), ("LH", 9, 12), ("RF", 12, 15), ("RH", 15, 18)]
    for other in (model, fj.models.humanoid(), fj.models.random_tree(20), fj.models.chain(5)):
        parts = limbs(other)
        assert [limb.start for limb in parts] == [0, *(limb.stop for limb in parts[:-1])]
        assert parts[-1].stop == other.nv == len(coordinate_names(other)[1])
        assert len({limb.name for limb in parts}) == len(parts)


# As a process of its own


def start(*arguments: str, **settings) -> subprocess.Popen:
    command = [sys.executable, "-m", "featherjet", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings)


def written_here(opened: Path) -> bool:
    """Whether an open file of another process, nameless perhaps, is in this folder and has contents."""
    try:
        return str(Path.cwd()) in os.readlink(opened) and opened.stat().st_size > 0
    except FileNotFoundError:  # closed by now
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows what another process has written")
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_derive_leaves_nothing(sign):
    main(["sample", "humanoid", "--size", "20000", "--no-tau", "--out", "in.npz"])
    process = start("derive", "humanoid", "--states", "in.npz", "--out", "d.npz")
    own = Path(f"/proc/{process.pid}/fd")
    while not any(map(written_here, own.iterdir())):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(sign)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert err.strip() == "interrupted"
    assert alone("in.npz")


def test_a_disk_that_fills_up_leaves_nothing(states):
    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    process = start("derive", "arm", "--states", "states.npz", "--out", "d.npz", preexec_fn=small)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "cannot be written (File too large)" in err
    assert "Traceback" not in err
    assert alone("states.npz")


def test_a_reader_that_leaves_early_is_no_error():
    process = start("info", "humanoid")
    assert process.stdout
    assert process.stderr
    process.stdout.close()  # long before Python is up and writes
    assert process.stderr.read() == ""
    assert process.wait(300) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "redirection, says, code",
    [(">&-", "stdout is closed", 2), (">/dev/full", "No space left on device", 2), (">&- 2>&-", "", 2),
     ("2>&- >/dev/null", "", 0), ("<&- >/dev/null", "", 0)],
)  # fmt: skip
@pytest.mark.parametrize("command", ["info arm", "sample arm --size 2 --out s.npz"])
def test_closed_and_full_streams_give_one_line(command, redirection, says, code):
    shell = f"{sys.executable} -m featherjet {command} {redirection}"
    run = subprocess.run(shell, shell=True, capture_output=True, text=True, timeout=300, check=False)
    assert len(run.stderr.splitlines()) == bool(says), run.stderr
    assert says in run.stderr
    assert run.returncode == code
    if Path("s.npz").exists():
        assert set(np.load("s.npz")) == {"q", "v", "a", "tau"}, "nothing was printed into the file"


def test_a_narrow_terminal_folds_names_and_keeps_numbers(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    assert main(["info", "quadruped"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines()[2:])) <= 50
    assert "…" not in out
    assert out.count(" -0.9 to 0.9 ") == 4


@pytest.mark.parametrize(
    "command, says",
    [("sample arm --out s.npz --size 99999999999999999999", "expected a positive whole number up to 1e+12"),
     ("sample arm --out s.npz --size " + "9" * 5000, "expected a positive whole number"),
     ("sample arm --out s.npz --size 999999999999", "out of memory"),
     ("view t.npz --port 70000", "expected a port from 1 to 65535"),
     ("transition arm --from a --to b --out t.npz --duration 1e400", "expected a positive number"),
     ("transition arm --from a --to b --out t.npz --duration nan", "expected a positive number")],
)  # fmt: skip
def test_odd_numbers_give_one_line(command, says, capsys):
    assert main(command.split()) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert says in last
    assert len(last) < 300


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows what another process has written")
def test_a_command_can_be_interrupted_where_its_parent_ignores_it():
    """As in a job that a shell runs in the background."""
    main(["sample", "humanoid", "--size", "20000", "--no-tau", "--out", "in.npz"])
    ignore = "import os, signal as s, sys; s.signal(s.SIGINT, s.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"
    command = [sys.executable, "-m", "featherjet", "derive", "humanoid", "--states", "in.npz", "--out", "d.npz"]
    process = subprocess.Popen([sys.executable, "-c", ignore, *command], stderr=subprocess.PIPE, text=True)
    own = Path(f"/proc/{process.pid}/fd")
    while not any(map(written_here, own.iterdir())):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert err.strip() == "interrupted"


def test_advice_is_what_one_types_in_a_shell(capsys):
    still = '<robot name="r"><link name="a"/></robot>'
    assert main(["info", write("r.urdf", still)]) == 2
    assert "load it with --root free to move it as one body" in capsys.readouterr().err
    assert main(["info", "arm", "--root", "free"]) == 2
    assert "--root free: the built-in robot 'arm' has its own root; omit --root" in capsys.readouterr().err


def test_info_shows_what_drives_joints_and_judges_inertias(capsys):
    assert main(["info", "quadruped"]) == 0
    out = capsys.readouterr().out
    heads, root, legs = out.split("\n\n")[2].splitlines()
    assert heads.split() == ["joints", "velocity", "effort", "armature", "damping"]
    assert root.split() == ["root", "none", "none", "0", "0"]
    assert legs.split()[-4:] == ["10", "80", "0.04", "0.1"]
    assert legs.count(",") == 11
    assert "inertias: all 13 are physically possible" in out
    assert main(["info", write("twisted.urdf", TWISTED)]) == 0
    assert "physically possible" not in capsys.readouterr().out


def test_robots_says_where_more_come_from_if_there_are_few(capsys, monkeypatch):
    monkeypatch.setattr("featherjet.cli.robots.robots", lambda: {"arm": "built-in"})
    assert main(["robots"]) == 0
    assert "pip install 'featherjet[robots]'" in capsys.readouterr().err
    monkeypatch.setattr("featherjet.cli.robots.robots", lambda: {"arm": "built-in", "x": "a/b/c/x.urdf"})
    assert main(["robots"]) == 0
    assert not capsys.readouterr().err


def test_robots_shows_other_names_too(capsys):
    assert main(["robots", "talos_full"]) == 0
    rows = [row.split() for row in capsys.readouterr().out.splitlines()[1:]]
    assert rows[0][:2] == ["talos_full_v2", "talos_full"]


def test_the_demo_tells_compilation_and_work_apart(capsys, monkeypatch):
    monkeypatch.setenv("FEATHERJET_BACKEND", "compiled")
    assert main(["demo", "--size", "2", "--robot", "arm"]) == 0
    out = capsys.readouterr().out
    assert out.index("machine code ready after") < out.index("2 random states: all derivatives in")
    assert "(later runs load it from disk)" in out
    monkeypatch.setenv("FEATHERJET_CACHE_DIR", "")
    assert main(["demo", "--size", "2", "--robot", "arm"]) == 0
    assert "(not kept on disk: FEATHERJET_CACHE_DIR is empty)" in capsys.readouterr().out


def test_a_file_that_is_no_motion_says_what_it_is(states, capsys):
    assert main(["derive", "arm", "--states", "states.npz", "--out", "d.npz"]) == 0
    for file, says in (("d.npz", "results of `featherjet derive`"), ("states.npz", "states, as `featherjet sample`")):
        capsys.readouterr()
        assert main(["view", file]) == 2
        assert f"{file}: it holds {says}" in capsys.readouterr().err


def test_no_arguments_show_the_help_and_typing_errors_are_guessed(capsys):
    assert main([]) == 0
    assert "commands:" in capsys.readouterr().out
    for words, says in (
        ("infoo arm", "unknown command 'infoo'; did you mean: info (see: featherjet --help)"),
        ("info arm --strct", "unrecognized arguments: --strct; did you mean: --strict (see: featherjet info --help)"),
        ("info arm more", "unrecognized arguments: more (see: featherjet info --help)"),
    ):
        assert main(words.split()) == 2
        assert capsys.readouterr().err == f"error: {says}\n"


def test_a_cache_that_cannot_be_written_is_a_line_and_no_traceback(tmp_path):
    """In a process of its own, whose warnings have the filters and the format that a user's have."""
    (tmp_path / "file").touch()
    there = {"FEATHERJET_CACHE_DIR": str(tmp_path / "file" / "cache"), "FEATHERJET_BACKEND": "compiled"}
    command = [sys.executable, "-m", "featherjet", "check", "arm", "--samples", "2"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **there})
    assert done.returncode == 0, done.stderr
    (said,) = done.stderr.splitlines()
    assert said.startswith("warning: compiled code cannot be kept")
