"""Which bags folders hold, and names for their reports that do not collide."""

import os
from pathlib import Path

from ...model.errors import ModelError
from .files import FORMATS, METADATA
from .predicted_bag import FRICTIONLESS

DEPTH = 6                   # folders below the one given in which bags are looked for
MAX_BAGS = 100_000
MAX_METADATA = 1 << 16      # bytes that are read of metadata


def is_collection(path):
    """Whether a path is a folder that is no bag itself, but may have bags in it."""
    path = Path(path)
    return path.is_dir() and not _is_bag(path)


def find_bags(paths):
    """Return the absolute paths of bags, each once: what is given and, of folders that are no bags, all bags below.

    A folder is a bag where it has metadata, or nothing but files of one recording.  Symbolic links below a folder are
    not followed, and bags of predictions are left out; what does not exist is kept, since it is somebody's bag that
    cannot be read.  Raises ModelError where a folder has no bag down to DEPTH folders below, or more than MAX_BAGS.
    """
    found = {}
    for path in map(Path, paths):
        if path.name == METADATA:
            path = path.parent
        bags = list(_below(path, DEPTH)) if is_collection(path) else [path]
        if not bags:
            raise ModelError(f"'{path}' has no bags: neither {METADATA} nor files {' or '.join(FORMATS)}, down to "
                             f'{DEPTH} folders below')
        for bag in bags:
            found.setdefault(os.path.realpath(bag), os.path.abspath(bag))
        if len(found) > MAX_BAGS:
            raise ModelError(f"'{path}' has more than {MAX_BAGS} bags")
    return tuple(found.values())


def report_names(bags, taken=()):
    """{bag: name of a folder for its report}: the last parts of its path, as many as tell it from the others.

    taken  names that are in use; letters that differ in case only are the same to some file systems
    """
    parts = {bag: [one for one in Path(os.path.abspath(bag)).parts if one != os.sep] or ['bag'] for bag in bags}
    depth = dict.fromkeys(bags, 1)
    while True:
        names = {bag: '_'.join(parts[bag][-depth[bag]:]) for bag in bags}
        same = {}
        for bag, name in names.items():
            same.setdefault(name.casefold(), []).append(bag)
        clashing = [bag for name, those in same.items() if len(those) > 1 or name in taken for bag in those]
        longer = [bag for bag in clashing if depth[bag] < len(parts[bag])]
        if not longer:
            break
        for bag in longer:
            depth[bag] += 1
    used = set(taken)
    for bag, name in names.items():
        number = 2
        while names[bag].casefold() in used:
            names[bag] = f'{name}_{number}'
            number += 1
        used.add(names[bag].casefold())
    return names


def is_predicted(folder):
    """Whether a folder is a bag of predictions, as `psdyn validate` writes them."""
    try:
        with (folder / METADATA).open(encoding='utf-8', errors='replace') as file:
            return FRICTIONLESS in file.read(MAX_METADATA)
    except OSError:
        return False


def _is_bag(folder):
    try:
        if (folder / METADATA).exists() or (folder / METADATA).is_symlink():
            return True
        entries = [one for one in folder.iterdir() if not one.is_symlink()]
        recordings = {_recording(one) for one in entries if one.suffix in FORMATS and one.is_file()}
        return len(recordings) == 1 and not any(one.is_dir() for one in entries)
    except OSError:
        return True         # whoever reads it says why that is not possible


def _recording(file):
    """The recording of which a file is a part; parts end in _0, _1, ... _10."""
    stem, _, number = file.stem.rpartition('_')
    return stem if stem and number.isdigit() else file.stem, file.suffix


def _below(folder, depth):
    """Yield the bags in a folder that is none, those nearest first."""
    entries = sorted(one for one in folder.iterdir() if not one.is_symlink())
    yield from (one for one in entries if one.suffix in FORMATS and one.is_file())
    for one in entries:
        if not one.is_dir():
            continue
        if _is_bag(one):
            if not is_predicted(one):
                yield one
        elif depth:
            yield from _below(one, depth - 1)
