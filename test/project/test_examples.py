"""Every example runs to its end, in a folder of its own, and is on the page of examples."""

import ast
import runpy

import pytest
from conftest import thorough
from support.paths import ROOT

EXAMPLES = sorted((ROOT / 'examples').glob('*.py'))
# the others take seconds
QUICK = [path for path in EXAMPLES if path.stem not in ('identify_payload', 'validate_bag')]
PAGE = ROOT / 'docs' / 'how-to' / 'examples.md'


@pytest.mark.parametrize('path', thorough(EXAMPLES, QUICK), ids=lambda path: path.stem)
def test_an_example_runs_and_reports(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name='__main__')
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize('path', EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_states_its_purpose_and_checks_itself(path):
    text = path.read_text()
    tree = ast.parse(text)
    assert 5 <= len(text.splitlines()) <= 40
    assert '?' in ast.get_docstring(tree)
    assert any(isinstance(node, ast.Assert) for node in ast.walk(tree))


def test_the_page_shows_every_example():
    page = PAGE.read_text()
    assert len(EXAMPLES) >= 10
    assert [f'examples/{path.name}' for path in EXAMPLES if f'--8<-- "examples/{path.name}"' not in page] == []
