"""Pages are short; tutorials, how-tos and explanations are in plain English."""

import re

import pytest
import textstat
from support.paths import ROOT

DOCS = ROOT / 'docs'
PLAIN = sorted([*(DOCS / 'tutorials').glob('*.md'), *(DOCS / 'how-to').glob('*.md'),
                *(page for page in (DOCS / 'explanation').glob('*.md') if page.stem != 'maths')])
SHORT = sorted([ROOT / 'README.md', *(page for page in DOCS.rglob('*.md') if page.parent.name != 'reference')])
EASE = 50.0             # Flesch reading ease that a page has at least
MAX_LINES = 200
WORDS = 25              # of a sentence in the mean, at most


def prose(text):
    """Return the sentences of a page without code, tables, pictures and addresses of links."""
    text = re.sub(r'^```.*?^```$', '', text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r'^(    .*|\|.*|!\[.*)$', '', text, flags=re.MULTILINE)
    text = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', text)
    text = re.sub(r'`[^`]*`', '', text)
    # a heading and an item of a list are sentences of their own
    text = re.sub(r'^#+ (.*)$', r'\1.', text, flags=re.MULTILINE)
    return re.sub(r'\s+', ' ', text)


@pytest.mark.parametrize('page', PLAIN, ids=lambda page: page.stem)
def test_pages_in_words_are_easy_to_read(page):
    text = prose(page.read_text())
    assert textstat.flesch_reading_ease(text) >= EASE
    assert len(text.split()) / len(re.findall(r'[.!?:;]( |$)', text)) <= WORDS


@pytest.mark.parametrize('page', SHORT, ids=lambda page: page.stem)
def test_no_page_but_those_of_reference_is_long(page):
    assert len(page.read_text().splitlines()) <= MAX_LINES


def test_hard_prose_is_found_hard_and_code_is_left_out():
    hard = 'Notwithstanding extraordinary organisational intricacies, interdisciplinary characterisation ' \
           'necessitates comprehensive methodological reconsideration.'
    assert textstat.flesch_reading_ease(prose(hard)) < EASE
    easy = f'The boom is up. It stays there.\n\n```sh\n{hard}\n```\n\n    {hard}\n\n| {hard} |\n\n`{hard}`\n'
    assert textstat.flesch_reading_ease(prose(easy)) > 90.0
