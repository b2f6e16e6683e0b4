"""Reads XML into elements with line numbers; hostile input is refused before or while parsing."""
import os
from xml.etree import ElementTree
from xml.parsers import expat

import defusedxml
from defusedxml.ElementTree import DefusedXMLParser

from ..errors import XmlError, shorten

MAX_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 64
MAX_ELEMENTS = 250_000      # of 2000 links with a hundred elements each
MAX_ATTRIBUTE = 4096        # characters


class Element(ElementTree.Element):
    """An element that knows its line in the file."""

    line = 0


class _Reader(DefusedXMLParser):
    """Forbids DTDs and entities (its base class), counts elements and their depth, stores lines."""

    def __init__(self):
        # The encoding declared in the prologue is that of the bytes; this text is decoded already.
        super().__init__(target=ElementTree.TreeBuilder(element_factory=Element), encoding='utf-8', forbid_dtd=True)
        self._read_prefixes_as_text()
        self._depth = self._count = 0
        start, end = self.parser.StartElementHandler, self.parser.EndElementHandler

        def numbered_start(tag, attributes):
            line = self.parser.CurrentLineNumber
            self._depth += 1
            self._count += 1
            if self._depth > MAX_DEPTH:
                raise XmlError(f'line {line}: elements nested deeper than {MAX_DEPTH}')
            if self._count > MAX_ELEMENTS:
                raise XmlError(f'line {line}: more than {MAX_ELEMENTS} elements')
            if any(len(text) > MAX_ATTRIBUTE for text in attributes):
                raise XmlError(f'line {line}: an attribute of <{shorten(tag)}> has more than {MAX_ATTRIBUTE} '
                               'characters')
            start(tag, attributes).line = line

        def counted_end(tag):
            self._depth -= 1
            end(tag)

        self.parser.StartElementHandler = numbered_start
        self.parser.EndElementHandler = counted_end

    def _read_prefixes_as_text(self):
        """Exchange the parser for one without namespaces: URDFs use prefixes that they do not declare."""
        plain = expat.ParserCreate('utf-8')
        for name in dir(plain):
            if 'Handler' in name or name in ('buffer_text', 'ordered_attributes'):
                setattr(plain, name, getattr(self.parser, name))
        self.parser = self._parser = plain


def read_text(path, max_bytes=MAX_BYTES):
    """Return the text of a UTF-8 file of at most `max_bytes` bytes; .xacro is expanded where xacro is installed."""
    try:
        path = os.fspath(path)
        size = os.path.getsize(path)
        if size > max_bytes:
            raise XmlError(f"'{path}' has {size} bytes; at most {max_bytes} are read")
        if path.endswith('.xacro'):
            return _expand(path)
        with open(path, 'rb') as file:
            # devices and pipes have no size
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise XmlError(f"cannot read '{shorten(path)}': {error.strerror}") from error
    except (TypeError, ValueError) as error:
        if isinstance(error, XmlError):
            raise
        raise XmlError(f"cannot read '{shorten(str(path))}': {error}") from error
    if len(content) > max_bytes:
        raise XmlError(f"'{path}' does not end; at most {max_bytes} bytes are read")
    try:
        return content.decode('utf-8')
    except UnicodeDecodeError as error:
        raise XmlError(f"'{path}' is not UTF-8 text: {error}") from error


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


def parse(text):
    """Return the root element of an XML text (str)."""
    if len(text) > MAX_BYTES or len(text.encode('utf-8', 'surrogatepass')) > MAX_BYTES:
        raise XmlError(f'the XML text has {len(text)} characters; at most {MAX_BYTES} bytes are read')
    reader = _Reader()
    try:
        reader.feed(text.encode('utf-8'))
        return reader.close()
    except ElementTree.ParseError as error:
        raise XmlError(f'not well-formed XML: {error}') from error
    except defusedxml.DefusedXmlException as error:
        raise XmlError(f'XML with a DTD or entities is refused: {error}') from error
    except (UnicodeError, ValueError) as error:
        if isinstance(error, XmlError):
            raise
        raise XmlError(f'not XML text: {error}') from error
