"""Reads text files of bounded size; .xacro is expanded where xacro is installed."""
import os
import re

from .errors import ModelError, XmlError, shorten

MAX_BYTES = 8 * 1024 * 1024
# encodings of one byte a character that XML may declare, of files that are not UTF-8
DECLARED = re.compile(rb'<\?xml[^>]{1,80}encoding=["\'](ISO-8859-1|ISO-8859-15|windows-1252)["\']', re.IGNORECASE)


def read_text(path, max_bytes=MAX_BYTES):
    """Return the text of a file of at most `max_bytes` bytes; .xacro is expanded where xacro is installed.

    It is UTF-8, or XML that declares an encoding of Western Europe.
    """
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
    declared = DECLARED.match(content)
    try:
        return content.decode('utf-8-sig')      # without the mark that spreadsheets put before it
    except UnicodeDecodeError as error:
        if declared:
            return content.decode(declared[1].decode(), 'replace')
        line = content.count(b'\n', 0, error.start) + 1
        raise ModelError(f"'{path}' is not UTF-8 text: line {line} has the byte 0x{content[error.start]:02x}; save it "
                         'as UTF-8') from error


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
