"""Reads XML into elements with line numbers; hostile input is refused before or while parsing."""
from xml.etree import ElementTree
from xml.parsers import expat

import defusedxml
from defusedxml.ElementTree import DefusedXMLParser

from ..errors import XmlError, shorten
from ..text_file import MAX_BYTES

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
