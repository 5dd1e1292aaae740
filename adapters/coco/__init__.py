"""COCO data: exdata folders and archives of numbbo, and data of IOHprofiler from before it wrote JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from polarbear_plugins.adapters.coco.catalog import is_index, is_ours
from polarbear_plugins.adapters.coco.options import CocoOptions
from polarbear_plugins.adapters.coco.reading import CocoRuns
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.trajectories.logs.places import Folder, Place, TarFile, ZipFile, is_tar
from polarbear_plugins.trajectories.trajectory import Trajectory

__all__ = ["polarbear_read_trajectories"]


@hookimpl
def polarbear_read_trajectories(source: object, options: Mapping[str, object]) -> Iterable[Trajectory] | None:
    """Folders, .info files and .tgz, .tar.gz, .tar and .zip archives of COCO data, one or a list."""
    paths = [source] if isinstance(source, str | Path) else source
    if not isinstance(paths, list | tuple) or not paths or not all(isinstance(path, str | Path) for path in paths):
        return None
    places = [_find_place(Path(path)) for path in paths]
    found = [place for place in places if place is not None]
    # Other sources of a list may be those of other adapters: then each is read alone.
    return CocoRuns(found, CocoOptions.parse(options)) if len(found) == len(places) else None


def _find_place(path: Path) -> Place | None:
    """Place to read from; ``None`` if nothing there looks like COCO data."""
    place: Place
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except (OSError, ValueError):  # text that cannot be a path
        return None
    if is_folder:
        place = Folder.walk(path)
    elif is_file and path.suffix.lower() == ".zip":
        place = ZipFile.walk(path)
    elif is_file and is_tar(path):
        return TarFile.walk(path, is_ours)  # no other adapter reads tar files: the error about an empty one is ours
    elif is_file and is_index(path.name):
        return Folder(path.parent, [path.name])
    else:
        return None
    return place if any(map(is_index, place.names)) and not any(map(_is_json, place.names)) else None


def _is_json(name: str) -> bool:
    """Whether a file describes runs of IOHprofiler, whose adapter then says what is wrong with the rest."""
    return PurePosixPath(name).match("IOHprofiler_*.json")
