"""Meshes of a URDF: where their files are, and their triangles, thinned to a budget."""

import os
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np

MAX_FILE_BYTES = 200_000_000
GRID = 256              # cells along the longest side at which thinning begins


class MeshError(ValueError):
    """A mesh that cannot be shown; the text says why."""


def find_mesh(uri, urdf_path):
    """Return the path of the file of a mesh: package://, file:// or relative to the URDF; MeshError."""
    parts = urlparse(uri)
    if parts.scheme in ('package', 'model'):
        candidates = _in_package(parts.netloc, unquote(parts.path).lstrip('/'), urdf_path)
    elif parts.scheme in ('', 'file'):
        candidates = [Path(os.path.dirname(urdf_path) or '.') / (unquote(parts.path) if parts.scheme else uri)]
    else:
        raise MeshError(f"'{uri}' is not a file")
    for path in candidates:
        if path.is_file():
            return path
    raise MeshError(f"'{uri}' was not found")


def _in_package(package, rest, urdf_path):
    prefixes = filter(None, os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep))
    folders = [Path(prefix) / 'share' / package for prefix in prefixes]
    # a package that is not installed: the URDF is in a folder of it, often beside or below one of that name
    for parent in Path(os.path.abspath(urdf_path)).parents if urdf_path else ():
        folders += [parent] * (parent.name == package) + [parent / package]
    return [folder / rest for folder in folders]


def read_mesh(path, scale, most):
    """Return (vertices (n, 3) float32 [m], triangles (m, 3) uint32), about `most` triangles; MeshError."""
    try:
        import trimesh
    except ImportError:
        raise MeshError(f"'{path.name}' needs trimesh, which is not installed (pip install trimesh)") from None
    if path.stat().st_size > MAX_FILE_BYTES:
        raise MeshError(f"'{path.name}' has more than {MAX_FILE_BYTES // 10**6} MB")
    try:
        mesh = trimesh.load(str(path), force='mesh', process=False, skip_materials=True)
        vertices, triangles = np.array(mesh.vertices, dtype=float) * scale, np.array(mesh.faces, dtype=np.int64)
    # readers of as many formats as there are fail in as many ways
    except Exception as error:
        raise MeshError(f"'{path.name}' cannot be read ({type(error).__name__}: {error})"[:200]) from None
    if triangles.ndim != 2 or not len(triangles) or not np.isfinite(vertices).all():
        raise MeshError(f"'{path.name}' has no triangles")
    if np.prod(scale) < 0.0:
        triangles = triangles[:, ::-1]
    vertices, triangles = thinned(vertices, triangles, most)
    return vertices.astype('<f4'), triangles.astype('<u4')


def thinned(vertices, triangles, most):
    """Return vertices and triangles with the vertices of a cell merged, in cells as fine as `most` triangles allow."""
    cells, found = GRID, (vertices, triangles)
    low, size = vertices.min(axis=0), np.ptp(vertices, axis=0).max() or 1.0
    while len(found[1]) > most and cells >= 4:
        _, first, merged = np.unique(np.round((vertices - low) * (cells / size)).astype(np.int64), axis=0,
                                     return_index=True, return_inverse=True)
        kept = merged.reshape(-1)[triangles]
        kept = kept[(kept[:, 0] != kept[:, 1]) & (kept[:, 1] != kept[:, 2]) & (kept[:, 2] != kept[:, 0])]
        found, cells = (vertices[first], np.unique(kept, axis=0)), cells * 3 // 4
    return found
