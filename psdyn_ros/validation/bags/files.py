"""The files of a bag: named by its metadata, inside its folder, decompressed where they are compressed as a whole."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ...model.errors import ModelError, shorten
from ...model.yaml_file import plain_contents
from .recording import BagError

METADATA = 'metadata.yaml'
INFORMATION = 'rosbag2_bagfile_information'
MAX_METADATA = 4 << 20          # bytes
MAX_FILES = 10_000
MAX_RATIO = 1000                 # that a whole file may grow by when it is decompressed, beyond MAX_GROWTH
MAX_GROWTH = 64 << 20           # bytes
SHARE_OF_DISK = 0.5             # of what is free, for files decompressed
PIECE = 1 << 20                 # bytes that are decompressed at once
FORMATS = {'.mcap': 'mcap', '.db3': 'sqlite3'}
BY_URI = set('?#%')             # mean something else where SQLite opens a file by URI
NOT_IN_NAMES = set('\\\0')
PLAIN, WHOLE_FILE, EACH_MESSAGE = '', 'file', 'message'


@dataclass(frozen=True)
class BagFiles:
    """What a bag consists of.

    path         as given
    format       'mcap' or 'sqlite3'
    files        paths, in the order of time
    compression  PLAIN, WHOLE_FILE or EACH_MESSAGE; chunks of MCAP are compressed by themselves
    messages     how many the metadata promise, None where there are no metadata
    """

    path: Path
    format: str
    files: tuple
    compression: str
    messages: int


def find_files(path):
    """Return the `BagFiles` of a folder with metadata, of one without, or of a single file; BagError."""
    path = Path(path)
    try:
        if path.is_dir():
            metadata = path / METADATA
            return _described(path, metadata) if metadata.exists() or metadata.is_symlink() else _undescribed(path)
        if path.exists() and not path.is_file():
            raise BagError(f"bag '{path}' is {_kind(path)}; expected a folder with {METADATA}, or a file "
                           f"{' or '.join(FORMATS)}")
        if not path.is_file():
            raise BagError(f"bag '{path}' does not exist; expected a folder with {METADATA}, or a file "
                           f"{' or '.join(FORMATS)}")
        if path.name == METADATA:
            return find_files(path.parent)
        return _single(path, (path,))
    # a link to itself is a RuntimeError until Python 3.13
    except (OSError, RuntimeError) as error:
        raise BagError(f"bag '{path}': {error}") from error


def _kind(path):
    """What a path that is neither a file nor a folder is."""
    return next((name for name, is_that in (('a FIFO', path.is_fifo), ('a socket', path.is_socket),
                                            ('a device', path.is_char_device), ('a device', path.is_block_device))
                 if is_that()), 'no file')


def _single(path, files):
    suffixes = {file.suffix for file in files}
    if len(suffixes) > 1 or not suffixes <= FORMATS.keys():
        raise BagError(f"bag '{path}': files {', '.join(sorted(suffixes))}; expected {' or '.join(FORMATS)}")
    for file in files:
        _check_name(path, file.name)
    return BagFiles(path, FORMATS[files[0].suffix], tuple(files), PLAIN, None)


def _undescribed(path):
    """A folder whose recorder was killed has no metadata yet."""
    files = sorted((file for file in path.iterdir() if file.suffix in FORMATS), key=_number)
    if not files:
        raise BagError(f"bag '{path}' has neither {METADATA} nor files {' or '.join(FORMATS)}")
    for file in files:
        _inside(path, file.name)
    return _single(path, files)


def _number(file):
    """Parts of a recording end in _0, _1, ... _10."""
    stem, _, number = file.stem.rpartition('_')
    return (stem, int(number)) if number.isdigit() and len(number) < 10 else (file.stem, -1)


def _described(path, metadata):
    metadata = _inside(path, METADATA)
    if metadata.stat().st_size > MAX_METADATA:
        raise BagError(f"bag '{path}': {METADATA} has more than {MAX_METADATA} bytes")
    try:
        text = metadata.read_text(encoding='utf-8')
        content = plain_contents(METADATA, text, aliases=True)
    except (ModelError, ValueError) as error:
        reason = shorten(' '.join(str(error).split()))
        raise BagError(f"bag '{path}': {METADATA} cannot be read: {reason}") from None
    information = _field(path, content, INFORMATION, dict)
    storage = _field(path, information, 'storage_identifier', str)
    if storage not in FORMATS.values():
        raise BagError(f"bag '{path}': storage '{shorten(storage)}'; expected {' or '.join(FORMATS.values())}")
    names = _field(path, information, 'relative_file_paths', list)
    if not 0 < len(names) <= MAX_FILES:
        raise BagError(f"bag '{path}': {METADATA} names {len(names)} files; expected 1 to {MAX_FILES}")
    files = tuple(_inside(path, name) for name in names)
    messages = information.get('message_count')
    messages = messages if isinstance(messages, int) and 0 <= messages < 2 ** 62 else None
    return BagFiles(path, storage, files, _compression(path, information), messages)


def _field(path, content, name, kind):
    value = content.get(name) if isinstance(content, dict) else None
    if not isinstance(value, kind):
        raise BagError(f"bag '{path}': {METADATA} has no {name} that is a {kind.__name__}")
    return value


def _compression(path, information):
    mode = str(information.get('compression_mode') or '').lower()
    mode = PLAIN if mode in ('', 'none', 'storage') else mode
    if mode not in (PLAIN, WHOLE_FILE, EACH_MESSAGE):
        raise BagError(f"bag '{path}': compression mode '{shorten(mode)}'; expected {WHOLE_FILE} or {EACH_MESSAGE}")
    kind = information.get('compression_format')
    if mode and kind != 'zstd':
        raise BagError(f"bag '{path}': compression format '{shorten(str(kind))}'; expected zstd")
    return mode


def _check_name(path, name):
    wrong = sorted(NOT_IN_NAMES & set(name))
    if wrong:
        raise BagError(f"bag '{path}': file '{shorten(name)}' has {wrong[0]!r} in its name")


def _inside(folder, name):
    """The path of a file that metadata name, which must be inside the folder, symbolic links followed."""
    if not isinstance(name, str) or not name:
        raise BagError(f"bag '{folder}': {METADATA} names a file {shorten(repr(name))}; expected text")
    parts = PurePosixPath(name).parts
    # before version 4 of the format paths began with the name of the folder
    if len(parts) == 2 and parts[0] == folder.resolve().name:
        parts = parts[1:]
    if len(parts) != 1 or parts[0] in ('..', '/'):
        raise BagError(f"bag '{folder}': file '{shorten(name)}' of {METADATA} leaves the folder of the bag")
    _check_name(folder, parts[0])
    file = folder / parts[0]
    if folder.resolve() not in file.resolve().parents:
        raise BagError(f"bag '{folder}': '{shorten(name)}' is a link out of the folder of the bag")
    if not file.exists():
        raise BagError(f"bag '{folder}': file '{shorten(name)}' of {METADATA} does not exist")
    if not file.is_file():
        raise BagError(f"bag '{folder}': '{shorten(name)}' is {_kind(file)}; expected a file")
    return file


class Linked:
    """Links to files in a temporary folder, under names that SQLite opens by URI; to be closed."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix='psdyn_bag_')

    def file(self, path, suffix):
        """Return a path without characters that mean something in a URI, that leads to a file."""
        link = Path(self._folder.name) / f'{len(list(Path(self._folder.name).iterdir()))}{suffix}'
        link.symlink_to(path.resolve())
        return link

    def close(self):
        """Remove the folder."""
        self._folder.cleanup()


class Decompressed:
    """Files in a temporary folder that holds one at a time, decompressed; to be closed."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix='psdyn_bag_')
        self._there = None, None

    def file(self, path, suffix):
        """Return the path of a file decompressed; what it held last is gone.  BagError where it grows without bound."""
        if self._there[0] != path:
            self._there = None, None
            target = Path(self._folder.name) / f'file{suffix}'
            _decompress(path, target)
            self._there = path, target
        return self._there[1]

    def close(self):
        """Remove the folder."""
        self._folder.cleanup()


def _decompress(path, target):
    import zstandard

    most = min(MAX_RATIO * path.stat().st_size + MAX_GROWTH,
               int(SHARE_OF_DISK * shutil.disk_usage(target.parent).free))
    written = 0
    try:
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        with path.open('rb') as packed, target.open('wb') as out, \
                reader.stream_reader(packed, read_across_frames=True) as stream:
            while piece := stream.read(PIECE):
                written += len(piece)
                if written > most:
                    raise BagError(f"'{path}' grows beyond {most} bytes when it is decompressed")
                out.write(piece)
    except zstandard.ZstdError as error:
        # what came before is there and is salvaged as that of any truncated file
        if not written:
            raise BagError(f"'{path}' cannot be decompressed: {error}") from None
