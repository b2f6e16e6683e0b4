"""XML text in, elements with line numbers out; everything hostile is refused before or while parsing."""
import os
from xml.etree import ElementTree

import defusedxml
from defusedxml.ElementTree import DefusedXMLParser

from .errors import XmlError

MAX_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 64


class Element(ElementTree.Element):
    """An element that knows its line in the file."""

    line = 0


class _Reader(DefusedXMLParser):
    """Forbids DTDs and entities (its base class), counts depth, notes lines."""

    def __init__(self):
        super().__init__(target=ElementTree.TreeBuilder(element_factory=Element), forbid_dtd=True)
        self._depth = 0
        start, end = self.parser.StartElementHandler, self.parser.EndElementHandler

        def numbered_start(tag, attributes):
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise XmlError(f'line {self.parser.CurrentLineNumber}: elements nested deeper than {MAX_DEPTH}')
            start(tag, attributes).line = self.parser.CurrentLineNumber

        def counted_end(tag):
            self._depth -= 1
            end(tag)

        self.parser.StartElementHandler = numbered_start
        self.parser.EndElementHandler = counted_end


def read_text(path):
    """Return the text of an XML file of at most MAX_BYTES; .xacro files are expanded where xacro is installed."""
    path = os.fspath(path)
    try:
        size = os.path.getsize(path)
        if size > MAX_BYTES:
            raise XmlError(f"'{path}' has {size} bytes; at most {MAX_BYTES} are read")
        if path.endswith('.xacro'):
            return _expand(path)
        with open(path, encoding='utf-8') as file:
            return file.read()
    except OSError as error:
        raise XmlError(f"cannot read '{path}': {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise XmlError(f"'{path}' is not UTF-8 text: {error}") from error


def _expand(path):
    try:
        import xacro
    except ImportError as error:
        raise XmlError(f"'{path}' needs xacro, which is not installed (ros-<distro>-xacro); "
                       'expand it to a .urdf file first') from error
    return xacro.process_file(path).toxml()


def parse(text):
    """Return the root element of an XML text (str)."""
    if len(text) > MAX_BYTES or len(text.encode('utf-8', 'surrogatepass')) > MAX_BYTES:
        raise XmlError(f'the XML text has {len(text)} characters; at most {MAX_BYTES} bytes are read')
    reader = _Reader()
    try:
        # An encoding declared in the prologue speaks of bytes; this text is decoded already.
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
