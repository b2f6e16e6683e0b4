"""Reads text files of bounded size; .xacro is expanded where xacro is installed."""
import os

from .errors import ModelError, XmlError, shorten

MAX_BYTES = 8 * 1024 * 1024


def read_text(path, max_bytes=MAX_BYTES):
    """Return the text of a UTF-8 file of at most `max_bytes` bytes; .xacro is expanded where xacro is installed."""
    try:
        path = os.fspath(path)
        size = os.path.getsize(path)
        if size > max_bytes:
            raise ModelError(f"'{path}' has {size} bytes; at most {max_bytes} are read")
        if path.endswith('.xacro'):
            return _expand(path)
        with open(path, 'rb') as file:
            # devices and pipes have no size
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise ModelError(f"cannot read '{shorten(path)}': {error.strerror}") from error
    except (TypeError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"cannot read '{shorten(str(path))}': {error}") from error
    if len(content) > max_bytes:
        raise ModelError(f"'{path}' does not end; at most {max_bytes} bytes are read")
    try:
        return content.decode('utf-8-sig')      # without the mark that spreadsheets put before it
    except UnicodeDecodeError as error:
        raise ModelError(f"'{path}' is not UTF-8 text: {error}") from error


def _expand(path):
    try:
        import xacro
    except ImportError as error:
        raise XmlError(f"'{path}' needs xacro, which is not installed (ros-<distro>-xacro); "
                       'expand it to a .urdf file first') from error
    try:
        return xacro.process_file(path).toxml()
    except Exception as error:      # whatever a macro or an expression in it may raise
        raise XmlError(f"xacro cannot expand '{path}': {type(error).__name__}: {error}") from error
