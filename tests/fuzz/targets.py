"""What is fuzzed: readers of files from outside. Each takes bytes and may raise nothing but a FeatherjetError.

A target comes with seeds, valid inputs from which mutants are made.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import featherjet as fj
from featherjet.cli.derive import read_states
from featherjet.cli.statefile import read_state
from featherjet.errors import MOST_CHARACTERS, FeatherjetError
from featherjet.files.npz import read_npz
from featherjet.model.io import saved
from featherjet.model.io.mjcf import load_mjcf
from featherjet.model.io.urdf import parse_urdf
from featherjet.view.meshfiles import FORMATS, crisp, glb, read_mesh
from featherjet.view.urdf_shapes import urdf_shapes


@cache
def arm() -> fj.Robot:
    return fj.Robot(fj.models.arm(), backend="numpy")


@cache
def folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="featherjet-fuzz-"))


def in_file(name: str, data: bytes) -> Path:
    path = folder() / name
    path.write_bytes(data)
    return path


def packed(arrays: dict[str, object]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def unpacked(data: bytes) -> dict[str, np.ndarray]:
    return dict(_unpacked(data))


@lru_cache(maxsize=8)
def _unpacked(data: bytes) -> dict[str, np.ndarray]:
    return dict(np.load(io.BytesIO(data)))


# Seeds


def urdf_seeds() -> list[bytes]:
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    links = "".join(f'<link name="{n}">{inertial}</link>' for n in "abcd")
    joint = '<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/>{4}<axis xyz="0 0 1"/></joint>'
    limit = '<limit lower="-1" upper="1" effort="10" velocity="2"/><dynamics damping="0.1" friction="0"/>'
    joints = joint.format("x", "revolute", "a", "b", limit + '<origin xyz="1 0 0" rpy="0 0.5 0"/>')
    joints += joint.format("y", "prismatic", "b", "c", limit + '<mimic joint="x" multiplier="2" offset="0.1"/>')
    joints += joint.format("z", "fixed", "c", "d", "")
    return [f'<?xml version="1.0"?><robot name="r">{links}{joints}</robot>'.encode()]


def mjcf_seeds() -> list[bytes]:
    inertial = '<inertial pos="0 0.1 0" mass="1" diaginertia="1 1 1"/>'
    tip = f'<body name="c" pos="0 0 1"><joint type="ball"/>{inertial}<site name="tip" pos="0 0 1"/></body>'
    joints = '<joint name="x" type="hinge" axis="0 1 0" range="-1 1" ref="0.2"/><joint type="slide" armature="0.1"/>'
    middle = f'<body name="b" pos="1 0 0" euler="0 0.5 0">{joints}<geom type="sphere" size="0.1"/>{tip}</body>'
    base = f'<body name="a"><freejoint name="base"/>{inertial}{middle}</body>'
    options = '<compiler angle="radian" autolimits="true"/><option gravity="0 0 -9.81"/>'
    return [f'<mujoco model="m">{options}<worldbody>{base}</worldbody></mujoco>'.encode()]


def json_seeds() -> list[bytes]:
    state = {"q": [0.1] * 7, "v": [0.0] * 7}
    named = {"q": {"joint2": 0.5, "joint4": -1.2}, "v": {"joint2": 1.0}}
    return [json.dumps(x).encode() for x in (state, named, {"q": [[0.1] * 7] * 4, "dt": 0.01})]


def states_seeds() -> list[bytes]:
    x = np.linspace(0, 1, 21).reshape(3, 7)
    return [
        packed({"q": x, "v": x, "a": x}),
        packed({"q": x[:1], "v": x[:1], "tau": x[:1], "fext": np.zeros((1, 7, 6))}),
    ]


def trajectory_seeds() -> list[bytes]:
    robot = fj.Robot(fj.models.random_tree(4, seed=2), backend="numpy")
    path = folder() / "seed.npz"
    robot.simulate(robot.neutral(), np.zeros(robot.nv), dt=0.01, duration=0.03, progress=False).save(path)
    return [path.read_bytes()]


def looks_seeds() -> list[bytes]:
    """A robot with every shape, materials, and meshes that lie beside it."""
    import trimesh

    for name, data in zip(("box.obj", "box.mtl", "box.dae", "box.glb", "box.png"), mesh_seeds(), strict=False):
        in_file(name, data)
    in_file("box.stl", trimesh.creation.box([1, 2, 3]).export(file_type="stl"))
    solids = ['<box size="1 2 3"/>', '<sphere radius="0.5"/>', '<cylinder radius="0.1" length="2"/>']
    solids += [f'<mesh filename="package://r/box.{k}" scale="1 1 0.5"/>' for k in ("obj", "dae", "glb", "stl")]
    material = '<material name="m"><color rgba="0.1 0.2 0.3 1"/></material>'
    shape = '<{0}><origin xyz="0 0 1" rpy="0 0.1 0"/><geometry>{1}</geometry><material name="m"/></{0}>'
    looks = "".join(shape.format(layer, x) for x in solids for layer in ("visual", "collision"))
    return [urdf_seeds()[0].replace(b'<link name="b">', f'{material}<link name="b">{looks}'.encode())]


def mesh_seeds() -> list[bytes]:
    """Wavefront with its material, COLLADA, glTF and a picture: a textured box."""
    import trimesh
    from PIL import Image

    picture = Image.fromarray(np.random.default_rng(0).integers(0, 255, (8, 8, 3), dtype=np.uint8))
    box = trimesh.creation.box([1, 2, 3])
    box.visual = trimesh.visual.TextureVisuals(uv=np.random.default_rng(1).random((8, 2)), image=picture)
    text, files = trimesh.exchange.obj.export_obj(box, return_texture=True)
    material = next(data for name, data in files.items() if name.endswith(".mtl"))
    image = io.BytesIO()
    picture.save(image, "PNG")
    named = material.replace(b"material_0.png", b"box.png")
    obj = text.replace("material.mtl", "box.mtl").encode()
    return [obj, named, box.export(file_type="dae"), box.export(file_type="glb"), image.getvalue()]


def transition_seeds() -> list[bytes]:
    robot = fj.Robot(fj.models.chain(2), backend="numpy")
    path = folder() / "seed.npz"
    ends = (robot.neutral(), np.zeros(2)), (np.full(2, 0.1), np.zeros(2))
    fj.transition(robot, *ends, 0.5, intervals=3, max_iterations=2).save(path)
    return [path.read_bytes()]


def model_seeds() -> list[bytes]:
    mimic = parse_urdf(urdf_seeds()[0], "free", mimic=True)
    return [saved.dumps(model).encode() for model in (mimic, fj.models.random_tree(4, seed=2))]


# Readers


def use(model: fj.Model) -> None:
    """What was accepted has finite dynamics, or an error says what is too large."""
    robot = fj.Robot(model, backend="numpy")
    robot.inverse_dynamics(robot.neutral(), np.ones(robot.nv), np.ones(robot.nv))
    robot.forward_dynamics(robot.neutral(), np.ones(robot.nv), np.ones(robot.nv))


def read_mjcf(data: bytes) -> None:
    """In a folder of its own, since MuJoCo writes a log of its warnings where it runs."""
    here = os.getcwd()
    os.chdir(folder())
    try:
        use(load_mjcf(in_file("m.xml", data)))
    finally:
        os.chdir(here)


def read_trajectory(data: bytes) -> None:
    motion = fj.Trajectory.load(in_file("t.npz", data))
    repr(motion), motion.split(), motion.standard()


def read_transition(data: bytes) -> None:
    motion = fj.Transition.load(in_file("t.npz", data), backend="numpy")
    repr(motion), motion.q(motion.times(5)), motion.tau(motion.times(5))


def read_looks(data: bytes) -> None:
    model = parse_urdf(data)
    for shape in urdf_shapes(model, in_file("looks.urdf", data), []):
        crisp(shape.mesh) if shape.colour else glb(shape.mesh)


def read_mesh_bytes(data: bytes) -> None:
    """As the file that it seems to be; materials and pictures are read by way of a mesh."""
    marks = {b"glTF": "x.glb", b"<COLL": "x.dae", b"PNG": "x.png", b"newmtl": "x.mtl"}
    name = next((name for mark, name in marks.items() if mark in data[:100]), "x.obj")
    obj, material, *_, picture = mesh_seeds()
    in_file("x.mtl", material.replace(b"box.png", b"x.png"))
    in_file("x.png", picture)
    in_file("x.obj", obj.replace(b"box.mtl", b"x.mtl"))
    path = in_file(name, data.replace(b"box.", b"x."))
    read_mesh.cache_clear()
    for mesh, colour, _ in read_mesh(path if path.suffix in FORMATS else path.with_suffix(".obj")):
        crisp(mesh) if colour else glb(mesh)


@dataclass(frozen=True)
class Target:
    read: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]
    form: str = ""  # of the seeds, which most mutants keep: one of fuzz.mutants.FORMS


TARGETS = {
    "urdf": Target(lambda data: use(parse_urdf(data, mimic=True)), urdf_seeds, form="xml"),
    "mjcf": Target(read_mjcf, mjcf_seeds, form="xml"),
    "model": Target(lambda data: use(saved.loads(data.decode("utf-8", "replace"))), model_seeds, form="json"),
    "state": Target(lambda data: read_state(arm(), in_file("s.json", data)), json_seeds, form="json"),
    "npz": Target(lambda data: read_npz(in_file("a.npz", data)), states_seeds, form="npz"),
    "states": Target(lambda data: read_states(arm(), in_file("s.npz", data)), states_seeds, form="npz"),
    "clip": Target(
        lambda data: read_state(arm(), in_file("c.npz", data)),
        lambda: [packed({"q": np.zeros((3, 7)), "dt": np.array(0.01)})], form="npz",
    ),
    "trajectory": Target(read_trajectory, trajectory_seeds, form="npz"),
    "transition": Target(read_transition, transition_seeds, form="npz"),
}  # fmt: skip
if find_spec("trimesh"):
    TARGETS["looks"] = Target(read_looks, looks_seeds, form="xml")
    TARGETS["mesh"] = Target(read_mesh_bytes, mesh_seeds)


def attempt(target: str, data: bytes) -> bool:
    """Whether the target accepted the bytes; anything but a FeatherjetError with one printable line is raised."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            TARGETS[target].read(data)
        except FeatherjetError as error:
            said = str(error)
        else:
            return True
    if len(said) > MOST_CHARACTERS + 10 or not said.replace("\n", "").isprintable():
        raise ValueError(f"not a line for a terminal: {said!r}")
    return False
