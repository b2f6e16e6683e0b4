"""The glossary has one meaning for each word, and the words that it retired are no names in the code."""

import io
import re
import tokenize
from functools import cache

import pytest
from support.paths import ROOT

# rooms that speak the language of the glossary
ROOMS = ('kernels', 'model', 'assembly', 'api')
# retired everywhere: others of the glossary have a meaning of their own outside of these rooms, as to hold a machine
OUTSIDE = ('told', 'tell', 'tangle', 'surroundings', 'ladder', 'rivals', 'salvage', 'tier', 'tiers', 'trusted',
           'flow_scale')
CONSTANTS = 'LEFT_OUT', 'SHORTEST', 'LONGEST'       # say neither of what nor in which unit


def rows():
    """Return the rows (word, meaning, unit, replaces) of the tables of the glossary."""
    lines = (ROOT / 'docs' / 'reference' / 'glossary.md').read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip('|').split('|')] for line in lines if line.startswith('|')]
    return [row for row in cells if row[0] != 'word' and not row[0].startswith('---')]


def retired():
    """Return {word: whether only the whole name is refused} of the retired words, in lower case."""
    return {word.lower(): bool(alone) for row in rows() for word, alone in re.findall(r'`(\w+)`( \(alone\))?', row[3])}


@cache
def names(text):
    """Return [(line, name)] of the identifiers of a source and of the record fields in its subscripts."""
    found, before = [], ''
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            found.append((token.start[0], token.string))
        elif token.type == tokenize.STRING and before in ('[', '('):
            field = re.fullmatch(r"'(\w+)'", token.string)
            if field:
                found.append((token.start[0], field[1]))
        before = token.string
    return found


def words(name):
    """Return the words of a name between underscores and capitals, in lower case."""
    return [word.lower() for word in re.findall(r'[A-Z]+(?![a-z])|[A-Z]?[a-z]+', name)]


def refused(text, vocabulary):
    """Return ['line: name'] of the names of a source that are retired or have a retired word."""
    return [f'{line}: {name}' for line, name in names(text) if name.lower() in vocabulary
            or any(not vocabulary.get(word, True) for word in words(name))]


def refused_in(rooms, vocabulary):
    """Return what is `refused` in the files of rooms of the package, by file, where anything is."""
    found = {str(path): refused(path.read_text(), vocabulary)
             for room in rooms for path in (ROOT / 'psdyn_ros' / room).rglob('*.py')}
    assert len(found) > 50
    return {path: names for path, names in found.items() if names}


def test_sources_use_no_retired_word():
    assert refused_in(ROOMS, retired()) == {}


def test_outer_rooms_have_no_names_of_the_private_dialect():
    vocabulary = dict.fromkeys(OUTSIDE, False)
    assert vocabulary.items() <= retired().items()
    assert refused_in(('nodes', 'simulation', 'validation', 'control', 'tools', 'view', 'cli'), vocabulary) == {}


def test_constants_have_a_noun():
    for path in (ROOT / 'psdyn_ros').rglob('*.py'):
        assert not {name for _, name in names(path.read_text())} & set(CONSTANTS), path


@pytest.mark.parametrize('text, found', [
    ('own = 1', True), ('self._own_rows = 1', True), ("b['laden'] = 1", True), ('class Tangle: pass', True),
    ('def close(loops, tied): pass', True), ("np.dtype([('opens', 'i8')])", True), ("b['on']", True),
    ('OWN_ROWS = 1', True), ('def unknown(): pass', False), ('on_branch = 1', False), ("'its own frame'", False),
    ('# told of it', False), ('downward = 1', False),
])
def test_retired_words_are_found_in_names_only(text, found):
    assert bool(refused(text, retired())) == found


def test_every_term_has_one_row_and_a_meaning():
    terms = [row[0] for row in rows()]
    assert len(terms) > 40 and len(set(terms)) == len(terms)
    assert all(len(row) == 4 and row[1] for row in rows())


def test_no_term_contains_a_retired_word():
    vocabulary = retired()
    for row in rows():
        assert not [word for word in words(row[0]) if not vocabulary.get(word, True)]
