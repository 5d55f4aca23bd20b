"""Robots by path and by name."""

import os
from pathlib import Path

import numpy as np
import pytest

from featherjet.errors import FeatherjetError, InputError, MissingFile, ModelError, UnknownName
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
    assert missing == {
        "ur3.urdf",
        "quadruped.urdf",
    }  # an empty shell, and one whose name a built-in robot has


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
        (3, InputError, "expected a path or the name of a robot, got int"),
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
