"""The formats that can be imported, and what mesh files become."""

import json
import os
import struct
import sys
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import trimesh

from urlab.compile.hulls import Triangles, compiled_triangles
from urlab.errors import ImportFailed
from urlab.importing.bundle import Bundle
from urlab.importing.formats import MAX_MESH_BYTES, ImportFormat, format_of, mesh_bundle, suffixes
from urlab.importing.sources import SourceFiles
from urlab.paths import FileRoots
from urlab.scene.blueprint_record import BlueprintKind


def test_every_suffix_is_in_lower_case_and_has_a_format() -> None:
    assert suffixes()
    assert [one for one in suffixes() if not one.startswith(".") or one != one.lower() or format_of(one) is None] == []


def test_no_two_formats_share_a_suffix() -> None:
    with pytest.raises(TypeError, match=r"Other reads \.stl, but MeshFormat does already"):

        class Other(ImportFormat):
            suffixes = (".off2", ".stl")

            def read(self, source: Path, sources: SourceFiles) -> tuple[Bundle, None]:
                raise NotImplementedError

    assert format_of(".off2") is None, "and nothing of it is registered"


RED = trimesh.visual.TextureVisuals(material=trimesh.visual.material.PBRMaterial(baseColorFactor=[255, 0, 0, 255]))


@pytest.fixture
def sources(tmp_path: Path) -> SourceFiles:
    return SourceFiles(FileRoots(read=(tmp_path.resolve(),)))


def compiled(bundle: Bundle) -> Any:
    return mujoco.MjModel.from_xml_string(bundle.files[bundle.main].decode(), dict(bundle.files))


def triangles(bundle: Bundle) -> Triangles:
    return compiled_triangles(compiled(bundle), 0)


def bounds(bundle: Bundle) -> np.ndarray:
    vertices = triangles(bundle).vertices
    return np.array([vertices.min(axis=0), vertices.max(axis=0)])


def box(extents: tuple[float, float, float], at: tuple[float, float, float]) -> Any:
    return trimesh.creation.box(extents, trimesh.transformations.translation_matrix(at))


@pytest.mark.parametrize("suffix", [".stl", ".obj", ".STL"])
def test_what_mujoco_reads_is_kept_byte_for_byte_and_needs_no_extra(
    tmp_path: Path, sources: SourceFiles, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / f"my part{suffix}"
    box((1, 2, 3), (4, 5, 6)).export(source)
    monkeypatch.setitem(sys.modules, "trimesh", None)
    bundle = mesh_bundle(source, sources)
    assert (bundle.stem, bundle.main, bundle.kind) == ("my part", "my_part.xml", BlueprintKind.STATIC_MESH)
    assert bundle.files[f"assets/my_part{suffix.lower()}"] == source.read_bytes()
    np.testing.assert_allclose(bounds(bundle), [[3.5, 4, 4.5], [4.5, 6, 7.5]], atol=1e-5)


def test_an_obj_may_refer_to_materials_that_are_not_there(tmp_path: Path, sources: SourceFiles) -> None:
    text = "mtllib gone.mtl\nusemtl red\n" + trimesh.creation.box().export(file_type="obj")
    (tmp_path / "part.obj").write_text(text)
    assert triangles(mesh_bundle(tmp_path / "part.obj", sources)).volume == pytest.approx(1.0)


def test_the_model_shows_the_mesh_and_has_no_physics(tmp_path: Path, sources: SourceFiles) -> None:
    trimesh.creation.box().export(tmp_path / "part.stl")
    model = compiled(mesh_bundle(tmp_path / "part.stl", sources))
    assert (model.nbody, model.ngeom, model.njnt, model.body(1).name) == (2, 1, 0, "part")
    geom = model.geom("visual")
    assert (geom.group[0], geom.contype[0], geom.conaffinity[0], model.body_mass[1]) == (2, 0, 0, 0.0)


def test_an_stl_that_mujoco_does_not_read_keeps_its_shape(tmp_path: Path, sources: SourceFiles) -> None:
    """The other kinds are read in `test_mesh_child`, which needs no process for each."""
    source = tmp_path / "part.stl"
    box((1, 2, 3), (4, 5, 6)).export(source, file_type="stl_ascii")
    bundle = mesh_bundle(source, sources)
    assert sorted(bundle.files) == ["assets/part.obj", "part.xml"]
    np.testing.assert_allclose(bounds(bundle), [[3.5, 4, 4.5], [4.5, 6, 7.5]], atol=1e-5)
    assert triangles(bundle).is_solid


def test_a_gltf_scene_is_merged_and_stands_upright(tmp_path: Path, sources: SourceFiles) -> None:
    scene = trimesh.Scene()
    scene.add_geometry(box((1, 4, 2), (0, 0, 0)), transform=trimesh.transformations.translation_matrix((0, 2, 0)))
    mirrored = np.diag([-1.0, 1.0, 1.0, 1.0])
    scene.add_geometry(box((1, 1, 1), (3, 0.5, 10)), transform=mirrored)
    for mesh in scene.geometry.values():
        mesh.visual = RED
    scene.export(tmp_path / "tower.glb")
    bundle = mesh_bundle(tmp_path / "tower.glb", sources)
    np.testing.assert_allclose(bounds(bundle), [[-3.5, -10.5, 0], [0.5, 1, 4]], atol=1e-5)
    merged = triangles(bundle)
    assert merged.volume == pytest.approx(9.0, rel=1e-5)
    assert merged.is_solid
    np.testing.assert_allclose(compiled(bundle).geom("visual").rgba, [1.0, 0.0, 0.0, 1.0])


def test_a_gltf_with_files_beside_it_is_read_with_them(tmp_path: Path, sources: SourceFiles) -> None:
    scene = trimesh.Scene(box((1, 4, 2), (0, 2, 0)))
    for name, content in scene.export(file_type="gltf").items():
        renamed = content.replace(b"gltf_buffer_", b"a%20buffer_") if name.endswith("gltf") else content
        (tmp_path / name.replace("gltf_buffer_", "a buffer_")).write_bytes(renamed)
    bundle = mesh_bundle(tmp_path / "model.gltf", sources)
    np.testing.assert_allclose(bounds(bundle), [[-0.5, -1, 0], [0.5, 1, 4]], atol=1e-5)


def test_a_gltf_cannot_reach_out_of_the_roots(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    for name, content in trimesh.Scene(trimesh.creation.box()).export(file_type="gltf").items():
        inside = name.endswith("gltf")
        folder = tmp_path / "inside" if inside else tmp_path
        (folder / name).write_bytes(content.replace(b"gltf_buffer_", b"../gltf_buffer_") if inside else content)
    inside_only = SourceFiles(FileRoots(read=((tmp_path / "inside").resolve(),)))
    with pytest.raises(ImportFailed, match=r"gltf_buffer_0.bin, which .*model.gltf needs, is outside.*--model-root"):
        mesh_bundle(tmp_path / "inside" / "model.gltf", inside_only)


@pytest.mark.parametrize("turned", ["open", "flat", "inside out"])
def test_meshes_without_a_volume_are_taken_as_well(tmp_path: Path, sources: SourceFiles, turned: str) -> None:
    mesh = trimesh.creation.box()
    faces = {"open": mesh.faces[:-2], "flat": mesh.faces, "inside out": mesh.faces[:, ::-1]}[turned]
    vertices = mesh.vertices * [1, 1, 0] if turned == "flat" else mesh.vertices
    trimesh.Trimesh(vertices, faces, process=False).export(tmp_path / "odd.stl")
    assert compiled(mesh_bundle(tmp_path / "odd.stl", sources)).ngeom == 1


def stl(*corners: float) -> bytes:
    return bytes(80) + struct.pack("<I12fH", 1, 0, 0, 0, *corners, 0)


def huge_gltf() -> bytes:
    """Promises two thousand million vertices in a few bytes."""
    accessors = [
        {"componentType": 5126, "type": "VEC3", "count": 2_000_000_000},
        {"componentType": 5125, "type": "SCALAR", "count": 2_000_000_001},
    ]
    meshes = [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}]
    document = {"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}]}
    return json.dumps({**document, "meshes": meshes, "accessors": accessors, "bufferViews": [], "buffers": []}).encode()


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.stl", stl(0, 0, 0, 1, 0, 0, 0, 1, float("nan")), "not finite"),
        ("a.stl", b"hello", "cannot be used as a mesh: it has no triangles"),
        ("a.gltf", b"{]", "not a glTF file"),
        ("a.gltf", huge_gltf(), "wanted more memory than the 4096 MiB"),
    ],
)
def test_files_that_are_no_meshes_are_refused(
    tmp_path: Path, sources: SourceFiles, name: str, content: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ImportFailed, match=reason):
        mesh_bundle(tmp_path / name, sources)


def test_missing_forbidden_and_oversized_files_are_refused(tmp_path: Path, sources: SourceFiles) -> None:
    with pytest.raises(ImportFailed, match=r"gone\.stl does not exist"):
        mesh_bundle(tmp_path / "gone.stl", sources)
    with pytest.raises(ImportFailed, match="--model-root"):
        mesh_bundle(Path("/etc/passwd.stl"), sources)
    (tmp_path / "big.stl").touch()
    os.truncate(tmp_path / "big.stl", MAX_MESH_BYTES + 1)
    with pytest.raises(ImportFailed, match=r"big\.stl is too large: a mesh file may have 128 MiB"):
        mesh_bundle(tmp_path / "big.stl", sources)


def test_without_the_extra_the_line_that_installs_it_is_told(
    tmp_path: Path, sources: SourceFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    trimesh.creation.box().export(tmp_path / "part.ply")
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(ImportFailed, match=r"part\.ply needs trimesh.*pip install 'urlab-headless\[mesh\]'"):
        mesh_bundle(tmp_path / "part.ply", sources)
