"""Robots by path and by name."""

import io
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from featherjet.errors import (
    FeatherjetError,
    InputError,
    MissingExtra,
    MissingFile,
    ModelError,
    ModelWarning,
    UnknownName,
)
from featherjet.model.io import catalog
from featherjet.model.io.catalog import load_model, robots
from urdf_helpers import TWO, quietly

MJCF = '<mujoco model="m"><worldbody><body><joint name="k"/><geom size="1"/></body></worldbody></mujoco>'


@pytest.mark.parametrize("name", robots())
def test_every_listed_robot_loads(name):
    root = "fixed" if robots()[name] == "built-in" else "free"
    assert quietly(load_model, name, root).nv > 0


@pytest.mark.parametrize(
    "name, file, nv",
    [
        ("panda", "panda", 9),
        ("ur3", "ur3_robot", 6),
        ("ur5", "ur5_robot", 6),
        ("ur10_limited", "ur10_joint_limited_robot", 6),
        ("baxter", "baxter", 19),
        ("hyq", "hyq_no_sensors", 12),
        ("talos", "talos_reduced", 32),
        ("talos_full", "talos_full_v2", 44),
        ("icub", "icub", 32),
        ("g1", "g1_29dof_rev_1_0", 29),
        ("solo12", "solo12", 12),
        ("Solo8", "solo", 8),
        ("anymal", "anymal", 12),
        ("anymal_c", "anymal", 12),
        ("anymal-kinova", "anymal-kinova", 18),
        ("hyq_description", "hyq_no_sensors", 12),
        ("ur3_robot", "ur3_robot", 6),
        ("quadruped_description", "quadruped", 8),
    ],
)
def test_names_people_use(name, file, nv):
    model = quietly(load_model, name)
    assert model.nv == nv
    assert catalog._resolve(name).stem == file


def test_both_anymals_have_names():
    listed = robots()
    assert "anymal_b_simple" in listed["anymal_b"]
    assert "anymal_c_simple" in listed["anymal_c"]
    assert "anymal" not in listed


def test_no_robot_of_the_wheel_is_lost():
    files = {str(f) for folder in catalog._folders() for f in folder.rglob("*.urdf")}
    missing = {Path(f).name for f in files - set(robots().values())}
    assert missing == {"ur3.urdf"}  # an empty shell


def test_listing():
    listed = robots()
    assert listed["arm"] == "built-in"
    assert all(source == "built-in" or os.path.isfile(source) for source in listed.values())


def test_unknown_names_are_answered_with_near_ones():
    with pytest.raises(UnknownName, match="unknown robot 'pandda'; did you mean: panda") as error:
        load_model("pandda")
    assert "panda" in error.value.choices
    with pytest.raises(InputError, match="'so_arm' is ambiguous: choose one of so100, so101"):
        load_model("so_arm")


def test_without_the_wheel(monkeypatch):
    monkeypatch.setattr(catalog, "_folders", lambda: ())
    assert set(robots().values()) == {"built-in"}
    with pytest.raises(UnknownName, match=r"pip install 'featherjet\[robots\]'"):
        load_model("panda")


def test_content_tells_the_format(tmp_path):
    for name, text, joint in (
        ("a.urdf", TWO, "j"),
        ("a.xml", TWO, "j"),
        ("b.xml", MJCF, "k"),
        ("b.mjcf", MJCF, "k"),
        ("b.urdf", MJCF, "k"),
        ("c", TWO, "j"),
    ):
        path = tmp_path / name
        path.write_text(text)
        assert load_model(path).joint_names == load_model(str(path)).joint_names == (joint,)


def test_a_file_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("robot.urdf", "mine", "panda"):
        Path(name).write_text(TWO)
    assert load_model("robot.urdf").nv == load_model("mine").nv == load_model(Path("panda")).nv == 1
    assert quietly(load_model, "panda").nv == 9  # a name stays a name


def test_settings_reach_the_loaders(tmp_path):
    for name, text in (("a.urdf", TWO), ("b.xml", MJCF)):
        path = tmp_path / name
        path.write_text(text)
        model = load_model(path, "free", gravity=(1, 2, 3))
        assert model.joint_names[0] == "root_joint"
        np.testing.assert_array_equal(model.gravity, [1, 2, 3])
    np.testing.assert_array_equal(load_model("arm", gravity=(0, 0, 0)).gravity, np.zeros(3))
    assert quietly(load_model, "panda", mimic=True).nv == 8
    with pytest.raises(ModelError, match="inertia without mass"):
        load_model("bolt", strict=True)
    with pytest.raises(InputError, match="built-in robot 'arm' has its own root"):
        load_model("arm", "free")


@pytest.mark.parametrize(
    "given, error, message",
    [
        ("nobody.urdf", MissingFile, r"nobody\.urdf: there is no such file"),
        ("some/where", MissingFile, "there is no such file"),
        (Path("nobody"), MissingFile, "nobody: there is no such file"),
        ("", UnknownName, "unknown robot ''"),
        ("a\0b", FeatherjetError, "a"),
        (3, InputError, "expected a path or the name of a robot, XML or an open file, got int"),
        (os.fsencode("x.urdf"), InputError, "expected a path"),
    ],
)
def test_bad_requests(given, error, message):
    with pytest.raises(error, match=message):
        load_model(given)


@pytest.mark.parametrize("suffix", [".urdf", ".xml", ".mjcf"])
def test_broken_files_of_any_suffix(tmp_path, suffix):
    path = tmp_path / f"bad{suffix}"
    for text in ("", "<", "<robot", "<html/>", "<mujoco>"):
        path.write_text(text)
        with pytest.raises(ModelError, match=r"bad\."):
            load_model(path)


def test_text_and_open_files_are_robots_too(tmp_path):
    path = tmp_path / "two.urdf"
    path.write_text(TWO)
    expected = load_model(path)
    declared = '\n\n<?xml version="1.0" encoding="latin-1"?>\n' + TWO
    for given in (
        TWO,
        TWO.encode(),
        "\ufeff\n" + TWO,
        declared,
        declared.encode(),
        io.StringIO(TWO),
        io.BytesIO(TWO.encode()),
    ):
        assert load_model(given).same_robot(expected)
    with open(path) as text, open(path, "rb") as data:
        assert load_model(text).same_robot(expected)
        assert load_model(data).same_robot(expected)
        with pytest.raises(ModelError, match=r"two.urdf: is empty, or has been read to its end"):
            load_model(data)
    assert load_model(MJCF).joint_names == ("k",)
    assert load_model(MJCF.encode()).joint_names == ("k",)
    (tmp_path / "m.xml").write_text(MJCF)
    with open(tmp_path / "m.xml", "rb") as file:
        assert load_model(file).joint_names == ("k",)


def test_text_has_lines_in_messages():
    with pytest.raises(ModelError, match="<string>:3: not well-formed"):
        load_model("\n\n<robot")
    with pytest.raises(ModelError, match="<string>:1: <sdf>: not a URDF"):
        load_model("<sdf/>")
    closed = io.StringIO(TWO)
    closed.close()
    with pytest.raises(ModelError, match="<file>: cannot be read"):
        load_model(closed)
    with pytest.raises(InputError, match=r"fj\.Robot\(model\) makes a robot of it"):
        load_model(load_model(TWO))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="reading it gives list"):
        load_model(type("Reader", (), {"read": lambda self, size: []})())


@pytest.fixture
def robot_descriptions(tmp_path, monkeypatch):
    """A stand-in for the package, whose own robots come over the network."""
    package = tmp_path / "robot_descriptions"
    package.mkdir()
    (tmp_path / "two.urdf").write_text(TWO)
    (tmp_path / "m.xml").write_text(MJCF)
    names = ("two_description", "one_mj_description", "template_description", "offline_description")
    (package / "__init__.py").write_text(f"DESCRIPTIONS = dict.fromkeys({names})")
    (package / "two_description.py").write_text(f"URDF_PATH = {str(tmp_path / 'two.urdf')!r}")
    (package / "one_mj_description.py").write_text(f"MJCF_PATH = {str(tmp_path / 'm.xml')!r}")
    (package / "template_description.py").write_text("XACRO_PATH = 'robot.urdf.xacro'")
    (package / "offline_description.py").write_text("raise ConnectionError('no route to host')")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.startswith("robot_descriptions")]:
        del sys.modules[name]


@pytest.mark.usefixtures("robot_descriptions")
def test_robots_of_robot_descriptions():
    assert robots()["two_description"] == "robot_descriptions"
    assert load_model("two_description").same_robot(load_model(TWO))
    assert load_model("robot_descriptions.two_description").same_robot(load_model(TWO))
    assert load_model("one_mj_description").joint_names == ("k",)
    with pytest.raises(ModelError, match="'template_description' as a xacro template only"):
        load_model("template_description")
    with pytest.raises(ModelError, match="cannot fetch 'offline_description': no route to host"):
        load_model("offline_description")
    with pytest.raises(UnknownName, match=r"did you mean.*two_description"):
        load_model("tow_description")


def test_a_robot_of_a_package_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    with pytest.raises(MissingExtra, match=r"needs robot_descriptions: pip install 'featherjet\[descriptions\]'"):
        load_model("robot_descriptions.panda_description")


def test_nicknames_mean_one_robot():
    for name, aliases in catalog.nicknames().items():
        for alias in aliases:
            assert str(catalog._resolve(alias)) == robots()[name]
    assert "talos" in catalog.nicknames()["talos_reduced"]
    assert robots()["quadruped_description"].endswith("quadruped.urdf"), "its own name is that of a built-in robot"


def test_damping_that_the_dynamics_leave_out_is_one_line():
    damped = TWO.replace("</joint>", '<dynamics damping="0.3" friction="0.1"/></joint>')
    assert damped != TWO
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_model(damped)
        load_model(TWO)
    (warning,) = (w for w in caught if "joints' laws" in str(w.message))
    assert all(issubclass(w.category, ModelWarning) and w.filename == __file__ for w in caught)
    assert str(warning.message) == (
        "<string>: joints' laws act in simulate(), and in the dynamics only of robot.with_joint_laws(): "
        "damping (1 joint), friction (1 joint)"
    )


def test_unknown_names_count_what_can_be_named():
    with pytest.raises(UnknownName) as caught:
        load_model("0" * 40)
    choices = caught.value.choices
    assert len({*choices}) == len(choices)
    assert {*robots()} <= {*choices}
    assert f"({len(choices)} in all)" in str(caught.value)
