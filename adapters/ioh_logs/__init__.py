"""IOHprofiler data: folders and zip files as ioh's Analyzer writes them, or as loaded by iohinspector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from polarbear_plugins.adapters.ioh_logs.frames import is_frame, is_manager, read_frame, read_manager
from polarbear_plugins.adapters.ioh_logs.index import is_index, is_old_index, is_rows
from polarbear_plugins.adapters.ioh_logs.options import LogOptions
from polarbear_plugins.adapters.ioh_logs.reading import LoggedRuns
from polarbear_plugins.errors import SourceError
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.trajectories.logs.places import Folder, Place, ZipFile, is_tar
from polarbear_plugins.trajectories.trajectory import Trajectory

__all__ = ["polarbear_read_trajectories"]


@hookimpl
def polarbear_read_trajectories(source: object, options: Mapping[str, object]) -> Iterable[Trajectory] | None:
    """Folders and zip files of IOHprofiler data, one or a list, and iohinspector's DataManager and data frames."""
    if is_manager(source):
        return read_manager(source, LogOptions.parse(options))
    if is_frame(source, options):
        return read_frame(source, LogOptions.parse(options))
    paths = [source] if isinstance(source, str | Path) else source
    if not isinstance(paths, list | tuple) or not paths or not all(isinstance(path, str | Path) for path in paths):
        return None
    places = [_find_places(Path(path)) for path in paths]
    if not any(places):
        return None
    if not all(places):
        others = [Path(path) for path, found in zip(paths, places, strict=True) if not found]
        if any(map(_holds_old_format, others)):
            return None  # each is read alone, by its own adapter
        raise SourceError(
            f"{others[0]} is not a folder or zip file of IOHprofiler data, and the others are. Leave it out."
        )
    return LoggedRuns([place for found in places for place in found], LogOptions.parse(options))


def _find_places(path: Path) -> list[Place]:
    """Places to read from; none if nothing there looks like IOHprofiler data."""
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except (OSError, ValueError):  # text that cannot be a path
        return []
    if is_file and path.suffix.lower() == ".zip":
        return _find_in_zip(path)
    place: Place
    if is_folder:
        place = Folder.walk(path)
    elif is_file and is_index(path.name):
        place = Folder(path.parent, [path.name])
    else:
        return []
    # An empty place is accepted: the error about it says what was expected.
    return [place] if _holds_logs(place) or not place.names else []


def _find_in_zip(path: Path) -> list[Place]:
    """A zip file and the zip files in it, as far as they hold IOHprofiler data."""
    outer = ZipFile.walk(path)
    inner = [ZipFile.walk(path, name) for name in outer.packed]
    found: list[Place] = [place for place in (outer, *inner) if _holds_logs(place)]
    if not found:
        deep = next((f"{place.who}/{name}" for place in inner for name in place.packed), None)
        if deep is not None:
            raise SourceError(
                f"{deep} is a zip file in a zip file in a zip file, which is not looked into. Unpack {path.name} once."
            )
    return found or ([] if outer.names else [outer])


def _holds_logs(place: Place) -> bool:
    # Rows of older versions have the same names as those of newer ones, and another index.
    old = any(map(is_old_index, place.names))
    return any(is_index(name) or (is_rows(name) and not old) for name in place.names)


def _holds_old_format(path: Path) -> bool:
    """Whether COCO's data, or those of older versions of IOHprofiler, are at a path that is not ours."""
    if path.is_dir():
        return any(map(is_old_index, Folder.walk(path).names))
    if path.suffix.lower() == ".zip":
        return any(map(is_old_index, ZipFile.walk(path).names))
    return is_old_index(path.name) or is_tar(path)
