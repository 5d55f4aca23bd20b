"""The benchmark and the cache command: the record is complete and sane, and wrong results are not timed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import featherjet as fj
from featherjet.cli import main
from featherjet.errors import ModelWarning
from featherjet.jit.engine import targets
from featherjet.jit.graph import Graph
from featherjet.lab.bench import chart, checking, contenders, loops, peers, robots, run, second_order, timing
from featherjet.lab.bench.checking import States
from featherjet.lab.bench.contenders import WAYS
from featherjet.lab.bench.peak import fma_peak
from featherjet.lab.bench.quantities import CONTACT_QUANTITIES, QUANTITIES
from featherjet.lab.instructions import instructions
from featherjet.lab.internals import count_instructions
from helpers import agree, every_kind, random_state

RUBBING = """<robot name="rubbing"><link name="base"/>
  <link name="arm"><inertial><origin xyz="0.2 0 0"/>
    <mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <dynamics damping="0.5" friction="0.1"/></joint></robot>"""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "featherjet.cli.bench.QUICK", timing.TimingSettings(rounds=3, turn=2e-4, longest=1e-3, patience=1e-2)
    )


# The command


@pytest.fixture(scope="module")
def quick(tmp_path_factory) -> Path:
    """The folder of one quick run on the built-in arm."""
    folder = tmp_path_factory.mktemp("quick")
    assert main(["bench", "arm", "--quick", "--batch", "16", "--out", str(folder)]) == 0
    return folder


def test_the_record_is_complete_and_sane(quick):
    report = json.loads((quick / "bench.json").read_text())
    assert set(report["peers"]) == {"pinocchio", "mujoco"}
    assert all(report["peers"].values())
    assert report["fma_peak"] > 1e8
    assert report["machine"]["instruction_set"] in targets()
    (robot,) = report["robots"]
    assert (robot["title"], robot["nv"], robot["batch"]) == ("arm", 7, 16)
    for quantity in QUANTITIES.values():
        found = robot["quantities"][quantity.name]
        expected = set(WAYS) - (set() if quantity.derivative_of else {contenders.DIFFERENCES})
        assert set(found["ways"]) | set(found["missing"]) == expected
        assert set(found["missing"]) <= {contenders.THREADS}  # on a machine with one core
        assert found["operations"] > 500
        assert 0 < found["share_of_peak"] < 1
        for name, way in found["ways"].items():
            assert 0 < way["seconds"]["low"] <= way["seconds"]["median"] <= way["seconds"]["high"], name
            assert way["ratio"]["median"] > 0, name
        assert found["ways"][contenders.PIN_LOOP]["ratio"]["median"] == 1.0
        assert found["ways"][contenders.PIN_LOOP]["difference"] < 1e-11
        assert found["ways"][contenders.MUJOCO]["difference"] < 1e-3
    assert (quick / "bench.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(os.listdir(quick)) == ["bench.json", "bench.png"]


def test_second_order(tmp_path, capsys):
    assert main(["bench", "chain3", "--order", "2", "--quick", "--batch", "16", "--out", str(tmp_path)]) == 0
    (robot,) = json.loads((tmp_path / "second_order.json").read_text())["robots"]
    assert [(r["name"], r["base"]) for r in robot["ratios"]] == [tuple(r) for r in second_order.RATIOS]
    assert all(r["ratio"] > 0 for r in robot["ratios"])
    assert "forward_dynamics_second_order" in capsys.readouterr().out


def test_calls_of_loops(tmp_path, capsys):
    assert main(["bench", "quadruped", "--loops", "--quick", "--batch", "16", "--out", str(tmp_path)]) == 0
    (robot,) = json.loads((tmp_path / "loops.json").read_text())["robots"]
    assert [*robot["quantities"]] == [call.name for call in loops.CALLS]
    for name, found in robot["quantities"].items():
        assert set(found["ways"]) == set(loops.WAYS), name
        assert all(way["ratio"]["median"] > 0 for way in found["ways"].values())
        assert found["ways"][contenders.PIN_LOOP]["difference"] < 1e-9, name
    assert "frame Jacobian" in capsys.readouterr().out


def test_the_table_shows_all_ways(capsys):
    assert main(["bench", "chain3", "--quick", "--batch", "8"]) == 0
    out = capsys.readouterr().out
    for way in set(WAYS) - {contenders.THREADS}:
        assert way in out
    assert "operations" in out
    assert "share of the core's peak" in out
    assert Path("bench/bench.json").exists()


@pytest.mark.parametrize("wrong", [contenders.PIN_LOOP, contenders.BOUND])
def test_wrong_results_are_not_timed(wrong, capsys, monkeypatch):
    right = contenders.make_contenders

    def slightly_off(*given):
        found, missing = right(*given)
        for way in found:
            if way.name == wrong:
                way.results = lambda true=way.results: tuple(1.0000001 * x for x in true())
        return found, missing

    monkeypatch.setattr(run, "make_contenders", slightly_off)
    assert main(["bench", "arm", "--quick", "--batch", "8"]) == 1
    assert "wrong results are not timed" in capsys.readouterr().err
    assert not list(Path("bench").iterdir())


def test_a_way_cannot_pass_with_the_results_of_another():
    robot = fj.load("arm", backend="compiled")
    states = States.random(robot, 8)
    found, _ = contenders.make_contenders(robot, QUANTITIES["inverse_dynamics"], states)
    lazy = next(way for way in found if way.name == contenders.MUJOCO)
    lazy.run = lambda n: None
    with pytest.raises(checking.Disagreement, match="MuJoCo"):
        checking.check(found, states)


def test_peers_that_are_not_installed_are_named(capsys, monkeypatch):
    for name in peers.PEERS:
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["bench", "chain2", "--quick", "--batch", "8"]) == 0
    out = capsys.readouterr().out
    assert "pinocchio: missing" in out
    assert f"missing: {contenders.MUJOCO}: not installed" in out
    report = json.loads(Path("bench/bench.json").read_text())
    assert report["peers"] == {"pinocchio": None, "mujoco": None}
    ways = report["robots"][0]["quantities"]["inverse_dynamics"]["ways"]
    assert contenders.PIN_LOOP not in ways
    assert ways[contenders.BATCH]["ratio"] is None
    bars, label = drawn(report, monkeypatch)
    assert label == "states per second"
    states = 1 / ways[contenders.BATCH]["seconds"]["median"]
    assert any(np.isclose(end, states) and 0 < start <= end for start, end in bars)


def drawn(report, monkeypatch) -> tuple[list[tuple[float, float]], str]:
    """The ends of all bars of the first panel of a chart, and the label of its axis."""
    figures = []
    monkeypatch.setattr(chart, "save_png", lambda figure, path, dpi: figures.append(figure))
    chart.save_chart(report, Path("chart.png"))
    bars = [(p.get_x(), p.get_x() + p.get_width()) for p in figures[0].axes[0].patches]
    return bars, figures[0].get_supxlabel()


def test_a_chart_has_one_unit(monkeypatch):
    """A robot that Pinocchio did not run has no bars beside those that are relative to it."""
    entry = {"seconds": {"median": 1e-6}, "ratio": {"median": 20.0}}
    robots = [
        {"title": "a", "nv": 1, "quantities": {q: {"ways": {contenders.BATCH: x}} for q in QUANTITIES}}
        for x in (entry, entry | {"ratio": None})
    ]
    bars, label = drawn({"robots": robots, "peers": {"pinocchio": "4"}}, monkeypatch)
    assert bars == [(1.0, 20.0)]
    assert "relative to" in label


def test_without_matplotlib_there_are_numbers(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["bench", "chain2", "--quick", "--batch", "8"]) == 0
    assert "no chart" in capsys.readouterr().out
    assert os.listdir("bench") == ["bench.json"]


def test_scaling(capsys):
    assert main(["bench", "--scaling", "--quick"]) == 0
    assert "operations over N*d" in capsys.readouterr().out
    found = json.loads(Path("bench/scaling.json").read_text())["scaling"]
    assert set(found) == {"chainN", "treeNx2", "treeNx4"}
    for family in found.values():
        assert 0 < family["operations_over_nd"] < 1.3
        assert all(row["seconds"]["median"] > 0 for row in family["rows"])


def test_an_interrupted_run_leaves_nothing():
    command = [sys.executable, "-m", "featherjet", "bench", "humanoid", "--out", "here"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline()  # it is under way, and will be for many seconds
    for _ in range(5):  # Python drops an interrupt that arrives within a destructor; users then press again
        process.send_signal(signal.SIGINT)
        try:
            _, err = process.communicate(timeout=20)
            break
        except subprocess.TimeoutExpired:
            continue
    else:
        process.kill()
        raise AssertionError("it cannot be interrupted")
    assert process.returncode == 130
    assert "interrupted" in err
    assert os.listdir("here") == []


# Its parts


@pytest.mark.parametrize("quantity", [*QUANTITIES.values(), *CONTACT_QUANTITIES.values()], ids=lambda x: x.name)
def test_the_record_of_a_quantity_is_what_the_robot_returns(quantity):
    robot = fj.Robot(fj.models.quadruped())
    s = random_state(robot)
    given = {"q": s.q, "v": s.v, "a": s.a, "tau": robot.inverse_dynamics(s.q, s.v, s.a)}
    contacts = fj.Contacts(robot, [fj.PointContact("LF_foot")])
    more = [contacts] if quantity.name in CONTACT_QUANTITIES else []
    found = getattr(robot, quantity.name)(*(given[name] for name in quantity.inputs), *more)
    results = found if isinstance(found, tuple) else (found,)
    expected = quantity.empty_results(len(s.q), {"v": robot.nv, "rows": contacts.rows})
    assert [x.shape for x in results] == [x.shape for x in expected]


def test_default_robots_have_stand_ins(monkeypatch):
    monkeypatch.setattr("featherjet.model.io.catalog._folders", lambda: ())
    found, missing = robots.defaults()
    assert [e.robot.name for e in found] == ["arm", "quadruped", "humanoid", "chain100", "chain500"]
    assert [e.batch for e in found] == [1024, 1024, 1024, 1024, 16]
    assert len(missing) == 3


def test_names_that_mean_what_everybody_measures():
    if "panda" not in fj.robots():
        pytest.skip("example-robot-data is not installed")
    assert robots.entrant("panda").robot.nv == 7
    assert robots.entrant("panda", "fixed").robot.nv == 9
    assert robots.entrant("hyq").robot.nv == 18
    assert robots.entrant("tree20x3").robot.nv == 20


@pytest.mark.parametrize("seed", range(3))
def test_pinocchios_model_is_ours(seed):
    pin = pytest.importorskip("pinocchio")
    robot = every_kind(seed)
    model = peers.to_pinocchio(robot.model)
    s = random_state(robot)
    tau = robot.inverse_dynamics(s.q, s.v, s.a)
    for k in range(len(s.q)):
        agree(pin.rnea(model, model.createData(), s.q[k], s.v[k], s.a[k]), tau[k], 1e-12)


def test_coordinate_axes_get_pinocchios_fast_joints():
    pytest.importorskip("pinocchio")
    names = {joint.shortname() for joint in list(peers.to_pinocchio(fj.models.arm()).joints)[1:]}
    assert names == {"JointModelRZ", "JointModelRY"}


def test_joints_that_mujoco_lacks_are_named():
    pytest.importorskip("mujoco")
    with pytest.raises(peers.NotAvailable, match="MuJoCo has no"):
        peers.to_mujoco(every_kind().model)


def test_chains_are_not_too_deep_for_mujoco():
    pytest.importorskip("mujoco")
    assert peers.to_mujoco(fj.models.chain(300)).nv == 300


def test_the_thread_is_let_go_again():
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("no affinity here")
    before = os.sched_getaffinity(0)

    def interrupted(_: int) -> None:
        assert len(os.sched_getaffinity(0)) == 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        timing.measure([timing.Contender("x", interrupted, 1)], timing.QUICK)
    assert os.sched_getaffinity(0) == before


def test_all_cores_are_all_threads():
    if not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) == 1:
        pytest.skip("one core, or no affinity here")
    every, ended = os.sched_getaffinity(0), threading.Event()
    with timing.one_core() as on_all_cores:
        worker = threading.Thread(target=ended.wait)  # begins with one core, as this thread has
        worker.start()
        try:
            assert len(os.sched_getaffinity(worker.native_id)) == 1
            with on_all_cores(True):
                assert os.sched_getaffinity(worker.native_id) == os.sched_getaffinity(0) == every
            assert len(os.sched_getaffinity(0)) == 1
        finally:
            ended.set()
            worker.join()


def test_laws_of_joints_are_not_warned_of(capsys):
    Path("rubbing.urdf").write_text(RUBBING)
    with pytest.warns(ModelWarning, match="laws act in simulate"):
        fj.load("rubbing.urdf")
    assert main(["bench", "rubbing.urdf", "--quick", "--batch", "4"]) == 0
    assert "laws" not in capsys.readouterr().err


def test_turns_alternate_and_times_are_per_sample(monkeypatch):
    """By a clock that only the contenders move, so that it does not matter what else the machine does."""
    log: list[str] = []
    now = [0.0]
    monkeypatch.setattr(timing, "time", SimpleNamespace(thread_time=lambda: now[0], perf_counter=lambda: now[0]))

    def spin(name: str, seconds: float):
        def run(n: int) -> None:
            log.append(name)
            now[0] += n * seconds

        return run

    slow = timing.Contender("slow", spin("slow", 2e-4), 4, whole=True)
    fast = timing.Contender("fast", spin("fast", 1e-4), 4, whole=True)
    settings = timing.TimingSettings(rounds=6, turn=1e-4, longest=1e-2, patience=1.0)
    times = timing.measure([slow, fast], settings).seconds
    assert times["slow"].shape == (5,)
    np.testing.assert_allclose(times["slow"], 2e-4, rtol=1e-9)
    np.testing.assert_allclose(times["fast"], 1e-4, rtol=1e-9)
    assert log[4:] == ["fast", "slow", "slow", "fast"] * 3


def test_instructions_are_fused():
    g = Graph()
    a, b, c = (g.load(k) for k in "abc")
    assert instructions(g, [(a * b + c).index]) == 1
    assert instructions(g, [(a * b - a * c).index]) == 2
    assert instructions(g, [(a * b + a * c + b).index]) == 2
    product = a * b
    assert instructions(g, [product.index, (product + c).index]) == 2  # wanted for itself too
    assert instructions(g, [(a / b).index]) == 1


def test_operations_grow_as_the_papers_say():
    counts = {
        (q, n): count_instructions(fj.models.chain(n), q)
        for q in ("inverse_dynamics", "inverse_dynamics_derivatives", "forward_dynamics_derivatives")
        for n in (50, 100, 200)
    }
    for q, order in (("inverse_dynamics", 1), ("inverse_dynamics_derivatives", 2)):
        first, second = (counts[q, n] for n in (100, 200))
        assert 2**order * 0.85 < second / first <= 2**order * 1.01, q
    # a quadratic has constant second differences: 30 FMAs for each pair of dofs above one another
    a, b, c = (counts["inverse_dynamics_derivatives", n] for n in (50, 100, 200))
    quadratic = ((c - b) / 100 - (b - a) / 50) / 150
    assert 10 < quadratic < 40


def test_the_peak_is_a_peak():
    assert 1e8 < fma_peak(0.05) < 1e12


# The cache


def test_cache_is_shown_and_cleared(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FEATHERJET_CACHE_DIR", str(tmp_path / "kept"))
    assert main(["cache", "info"]) == 0
    assert ": 0 files, 0 MB" in capsys.readouterr().out
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "a.fjo").write_bytes(b"x" * 2_000_000)
    (tmp_path / "kept" / "b.fjo").write_bytes(b"")
    (tmp_path / "kept" / "mine.txt").write_text("not the cache's")
    assert main(["cache", "info"]) == 0
    assert f"{tmp_path / 'kept'}: 2 files, 2 MB" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert "2 files removed" in capsys.readouterr().out
    assert os.listdir(tmp_path / "kept") == ["mine.txt"]


def test_cache_that_is_off(capsys, monkeypatch):
    monkeypatch.setenv("FEATHERJET_CACHE_DIR", "")
    for action in ("info", "clear"):
        assert main(["cache", action]) == 0
        assert "no code is kept" in capsys.readouterr().out
