"""The shapes of URDF and MJCF files: every format, with colours and textures, where the robot's links are."""

from __future__ import annotations

import builtins
import os
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import featherjet as fj
from featherjet.errors import MissingExtra, ModelError, ModelWarning
from featherjet.view import meshfiles
from featherjet.view.meshfiles import glb, locate, read_mesh
from featherjet.view.shape import Shape
from featherjet.view.shapes import shapes

trimesh = pytest.importorskip("trimesh", reason="trimesh is not installed: pip install 'featherjet[viewer]'")

LINKS = """<link name="base"/><joint name="j" type="continuous"><parent link="base"/><child link="a"/>
    <origin xyz="0 0 1"/></joint><link name="a">{}</link>"""


def urdf(folder: Path, link: str, more: str = "") -> Path:
    path = folder / "robot.urdf"
    path.write_text(f'<robot name="r">{more}{LINKS.format(link)}</robot>')
    return path


def only(path: Path, layer: str = "visual") -> Shape:
    (found,) = [s for s in shapes(fj.load(path).model) if s.layer == layer]
    return found


def visual(geometry: str, material: str = "") -> str:
    return f'<visual><origin xyz="0 0 2"/><geometry>{geometry}</geometry>{material}</visual>'


def textured_box():
    from PIL import Image

    uv = np.random.default_rng(0).random((8, 2))
    image = Image.fromarray(np.random.default_rng(1).integers(0, 255, (16, 16, 3), dtype=np.uint8))
    box = trimesh.creation.box([1, 2, 3])
    box.visual = trimesh.visual.TextureVisuals(uv=uv, image=image)
    return box


@pytest.mark.parametrize(
    "tag,size",
    [
        ('<box size="1 2 3"/>', [1, 2, 3]),
        ('<sphere radius="0.5"/>', [1, 1, 1]),
        ('<cylinder radius="0.5" length="2"/>', [1, 1, 2]),
        ('<capsule radius="0.5" length="2"/>', [1, 1, 3]),
    ],
)
def test_primitives_of_a_urdf(tmp_path, tag, size):
    shape = only(urdf(tmp_path, visual(tag, '<material name="m"><color rgba="0.1 0.2 0.3 0.4"/></material>')))
    np.testing.assert_allclose(shape.mesh.extents, size, atol=0.02)
    np.testing.assert_allclose(shape.placement[:3, 3], [0, 0, 2])
    assert shape.joint == 0
    assert shape.colour == (0.1, 0.2, 0.3, 0.4)


@pytest.mark.parametrize("suffix", ["stl", "obj", "dae", "glb", "ply"])
def test_mesh_files_of_every_format(tmp_path, suffix):
    trimesh.creation.box([1, 2, 3]).export(tmp_path / f"box.{suffix}")
    shape = only(urdf(tmp_path, visual(f'<mesh filename="package://r/box.{suffix}" scale="2 1 1"/>')))
    np.testing.assert_allclose(sorted(shape.mesh.extents), [2, 2, 3], atol=1e-6)


def test_a_mesh_without_looks_takes_the_materials_of_the_urdf_by_name(tmp_path):
    trimesh.creation.box([1, 1, 1]).export(tmp_path / "box.stl")
    red = '<material name="red"><color rgba="1 0 0 1"/></material>'
    shape = only(urdf(tmp_path, visual('<mesh filename="box.stl"/>', '<material name="red"/>'), red))
    assert shape.colour == (1, 0, 0, 1)


def test_textures_reach_the_browser(tmp_path):
    textured_box().export(tmp_path / "box.glb")
    shape = only(urdf(tmp_path, visual('<mesh filename="box.glb"/>')))
    assert shape.colour is None
    again = trimesh.load(trimesh.util.wrap_as_stream(glb(shape.mesh)), file_type="glb", force="mesh")
    assert again.visual.material.baseColorTexture.size == (16, 16)
    assert again.visual.uv.shape == (8, 2)


def test_the_unit_of_a_collada_file_counts(tmp_path):
    data = trimesh.creation.box([1, 2, 3]).export(file_type="dae")
    text = (data.decode() if isinstance(data, bytes) else data).replace('meter="1"', 'meter="0.001"')
    if 'meter="0.001"' not in text:
        text = text.replace("<up_axis>", '<unit name="mm" meter="0.001"/><up_axis>')
    assert 'meter="0.001"' in text
    (tmp_path / "box.dae").write_text(text)
    ((mesh, *_),) = read_mesh(tmp_path / "box.dae")
    np.testing.assert_allclose(mesh.extents, [0.001, 0.002, 0.003], rtol=1e-6)


def test_a_missing_package_names_itself(tmp_path, monkeypatch):
    trimesh.creation.box([1, 1, 1]).export(tmp_path / "box.dae")
    path, find = urdf(tmp_path, visual('<mesh filename="box.dae"/>')), builtins.__import__

    def without_collada(name, *args, **kwargs):
        if name.split(".")[0] == "collada":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return find(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_collada)
    with pytest.raises(MissingExtra, match=r"box\.dae needs pycollada: pip install 'featherjet\[viewer\]'"):
        shapes(fj.load(path).model)


def test_lost_and_broken_meshes_are_named_and_the_collision_shape_is_seen(tmp_path):
    (tmp_path / "broken.stl").write_bytes(b"solid what")
    link = visual('<mesh filename="lost.stl"/>') + visual('<mesh filename="broken.stl"/>')
    path = urdf(tmp_path, link + '<collision><geometry><sphere radius="0.5"/></geometry></collision>')
    with pytest.warns(ModelWarning, match=r"(?s)lost\.stl.*broken\.stl"):
        found = shapes(fj.load(path).model)
    assert sorted(s.layer for s in found) == ["collision", "visual"]


BOX = '<box size="1 1 1"/>'
LOOK = '<material name="m">{}</material>'


@pytest.mark.parametrize(
    "geometry, material, message",
    [
        (BOX, '<color rgba="1 0"/>', "<color>.*rgba='1 0': expected 3 or 4 numbers, got 2"),
        (BOX, '<color rgba="1 0 nan 1"/>', "<color>.*'nan' is not a finite number"),
        (BOX, '<color rgba="1 0 300 1"/>', "<color>.*must be from 0 to 1"),
        (BOX, '<color rgba="red"/>', "<color>.*expected 3 or 4 numbers, got 1"),
        (BOX, "<color/>", "<color>.*attribute 'rgba' is missing"),
        ('<sphere radius="0"/>', "", "<sphere>.*radius='0': must be positive"),
        ('<box size="1 -2 1"/>', "", "<box>.*size='1 -2 1': must be positive"),
        (
            '<cylinder radius="1" length="1e300"/>',
            "",
            "<cylinder>.*length='1e300': must be positive, and at most 1e.06",
        ),
        ('<capsule radius="nan" length="1"/>', "", "<capsule>.*'nan' is not a finite number"),
        ('<mesh filename="box.stl" scale="1 0 1"/>', "", "<mesh>.*scale='1 0 1': must not be zero"),
        (f'<mesh filename="{"x" * 5000}.stl"/>', "", "<mesh>.*there is no file xxx"),
    ],
)
def test_looks_that_cannot_be_are_named_by_line(tmp_path, geometry, material, message):
    """A wrong colour takes nothing from the shape; a wrong shape is seen as its link collides."""
    trimesh.creation.box([1, 1, 1]).export(tmp_path / "box.stl")
    collision = '<collision><geometry><sphere radius="2"/></geometry></collision>'
    path = urdf(tmp_path, visual(geometry, LOOK.format(material) if material else "") + collision)
    with pytest.warns(ModelWarning, match=rf"(?s)robot\.urdf:\d+: {message}"):
        shape = only(path)
    assert (shape.mesh.extents.max() < 1.5) == bool(material)


def test_a_link_whose_mesh_is_refused_is_seen_as_it_collides(tmp_path):
    """Beside another link of the same joint, and with the reason of the reader: here a texture without a picture."""
    data = textured_box().export(file_type="dae").decode()
    lost = '<newparam sid="s"><sampler2D><source>lost</source></sampler2D></newparam>'
    (tmp_path / "box.dae").write_text(data.replace("<profile_COMMON>", f"<profile_COMMON>{lost}"))
    foot = """<joint name="f" type="fixed"><parent link="a"/><child link="b"/></joint><link name="b">{}{}</link>"""
    sphere = '<collision><geometry><sphere radius="2"/></geometry></collision>'
    path = urdf(tmp_path, visual(BOX))
    text = path.read_text().replace("</robot>", foot.format(visual('<mesh filename="box.dae"/>'), sphere) + "</robot>")
    path.write_text(text)
    with pytest.warns(
        ModelWarning, match=r"box\.dae: contains no triangles that can be drawn \(DaeBrokenRefError: .*lost"
    ):
        found = [s.mesh.extents.max() for s in shapes(fj.load(path).model) if s.layer == "visual"]
    assert len(found) == 2
    assert max(found) > 3


def bomb(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "bomb.3mf", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("3D/3dmodel.model", b" " * (8 << 20))
    return folder / "bomb.3mf"


def many_parts(folder: Path) -> Path:
    scene = trimesh.Scene()
    scene.add_geometry(trimesh.creation.box([1, 1, 1]), geom_name="box")
    for k in range(20):
        scene.graph.update(f"copy {k}", geometry="box")
    scene.export(folder / "many.glb")
    return folder / "many.glb"


def large_texture(folder: Path) -> Path:
    box = textured_box()
    box.visual.material.image = box.visual.material.image.resize((100, 100))
    box.export(folder / "large.glb")
    return folder / "large.glb"


def wrong_triangle(folder: Path) -> Path:
    box = trimesh.creation.box([1, 1, 1])
    return patched(folder, box, np.uint32(box.faces), np.uint32(box.faces + 700))


def not_finite(folder: Path) -> Path:
    box = trimesh.creation.box([1, 1, 1])
    return patched(folder, box, np.float32(box.vertices), np.float32(np.inf * box.vertices))


def patched(folder: Path, mesh, old: np.ndarray, new: np.ndarray) -> Path:
    data = mesh.export(file_type="glb")
    assert old.tobytes() in data
    (folder / "patched.glb").write_bytes(data.replace(old.tobytes(), new.tobytes()))
    return folder / "patched.glb"


@pytest.mark.parametrize(
    "make, message",
    [
        (bomb, r"bomb\.3mf: meshes are read from \.stl"),
        (many_parts, "parts with .* faces are more than 10 with 5000000"),
        (large_texture, "its texture has 100 x 100 pixels"),
        (wrong_triangle, "a triangle has a vertex that does not exist"),
        (not_finite, "some vertices are not finite"),
    ],
)
def test_meshes_take_no_more_than_is_right(tmp_path, monkeypatch, make, message):
    monkeypatch.setattr(meshfiles, "MOST_PARTS", 10)
    monkeypatch.setattr(meshfiles, "LARGEST_TEXTURE", 50 * 50)
    with pytest.raises(ModelError, match=message):
        read_mesh(make(tmp_path))


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    trimesh.creation.box([1, 2, 3]).export(tmp_path / "box.stl")
    monkeypatch.setattr(meshfiles, "MOST_BYTES", 100)
    with pytest.raises(ModelError, match="make it coarser"):
        read_mesh(tmp_path / "box.stl")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_as_a_material_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe.mtl")
    (tmp_path / "a.obj").write_text("mtllib pipe.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl a\nf 1 2 3\n")
    ((mesh, *_),) = read_mesh(tmp_path / "a.obj")
    assert len(mesh.faces) == 1


def test_the_base_of_an_arm_is_drawn_on_the_world(tmp_path):
    path = tmp_path / "arm.urdf"
    base = visual('<box size="1 1 1"/>')
    path.write_text(f'<robot name="r">{LINKS.format("").replace("base", "x", 0)}</robot>'.replace(
        '<link name="base"/>', f'<link name="base">{base}</link>'))  # fmt: skip
    assert only(path).joint == -1


def test_robots_of_the_wheel_look_like_themselves():
    known = fj.robots()
    if "panda" not in known:
        pytest.skip("example-robot-data is not installed")
    for name, least in {"panda": 11, "solo12": 13}.items():
        model = fj.load(name).model
        with warnings.catch_warnings():
            warnings.simplefilter("error", ModelWarning)
            found = shapes(model)
        assert len([s for s in found if s.layer == "visual"]) >= least
        assert any(s.layer == "collision" for s in found)
    assert locate("package://nowhere/nothing.stl", Path(known["panda"])) is None


MJCF = """<mujoco><asset>
    <texture name="t" type="2d" builtin="checker" width="8" height="8" rgb1="1 0 0" rgb2="0 1 0"/>
    <material name="m" texture="t"/>
    <mesh name="x" vertex="0 0 0 1 0 0 0 1 0 0 0 1" texcoord="0 0 1 0 0 1 1 1"/></asset>
    <worldbody><geom type="plane" size="1 1 1"/><geom type="box" size="0.1 0.2 0.3" pos="5 0 0"/>
    <body name="b" pos="0 0 1"><freejoint/>
    <geom type="sphere" size="0.5" rgba="0.1 0.2 0.3 1"/><geom type="capsule" size="0.1 0.3" pos="1 0 0"/>
    <geom type="ellipsoid" size="0.1 0.2 0.3"/><geom type="cylinder" size="0.1 0.3"/>
    <geom type="mesh" mesh="x" material="m" contype="0" conaffinity="0"/>
    <geom type="box" size="1 1 1" group="3"/></body></worldbody></mujoco>"""


def test_shapes_of_an_mjcf(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "robot.xml"
    path.write_text(MJCF)
    found = shapes(fj.load(path).model)
    seen = [s for s in found if s.layer == "visual"]
    sizes = [s.mesh.extents.round(2).tolist() for s in seen]
    for size in ([0.2, 0.4, 0.6], [1, 1, 1], [0.2, 0.2, 0.8], [0.2, 0.2, 0.6]):
        assert any(np.allclose(size, x, atol=0.02) for x in sizes), (size, sizes)
    assert [s.joint for s in seen] == [-1, 0, 0, 0, 0, 0]
    assert np.allclose(seen[1].colour, (0.1, 0.2, 0.3, 1))
    np.testing.assert_allclose(seen[2].placement[:3, 3], [1, 0, 0])
    (mesh,) = [s for s in seen if s.colour is None]
    assert mesh.mesh.visual.uv.shape == (12, 2)
    corner = mesh.mesh.vertices @ mesh.placement[:3, :3].T + mesh.placement[:3, 3]  # where the file has them
    np.testing.assert_allclose(
        np.unique(corner.round(6), axis=0), [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]], atol=1e-6
    )
    collides = [s for s in found if s.layer == "collision"]
    assert any(np.allclose(s.mesh.extents, [2, 2, 2]) for s in collides)
    assert not any(s.colour is None for s in collides)


def test_the_file_is_remembered(tmp_path):
    path = urdf(tmp_path, visual('<box size="1 2 3"/>') + '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" '
                'ixy="0" ixz="0" iyz="0"/></inertial>')  # fmt: skip
    robot = fj.load(path, backend="numpy")
    assert robot.model.source == str(path)
    motion = robot.simulate(robot.neutral(), np.zeros(robot.nv), dt=0.1, duration=0.2, progress=False)
    assert fj.Trajectory.load(motion.save(tmp_path / "s.npz")).model.source == str(path)
    assert robot.with_gravity([0, 0, 0]).model.source == str(path)
    locked = fj.load(path, root="free").lock({"j": [1.0, 0.0]}).model
    assert locked.source == str(path)
    (shape,) = shapes(locked)
    np.testing.assert_allclose(shape.placement[:3, 3], [0, 0, 3])
