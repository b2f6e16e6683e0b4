"""`psdyn papers`: its numbers, its verdicts, and the committed page beside a fresh run."""

import re
from decimal import Decimal
from functools import cache

import numpy as np
import pytest
from conftest import thorough
from support.machines import paz_machine
from support.paths import ROOT

from psdyn_ros import cli
from psdyn_ros.tools.papers import SECTIONS, findings, page, runner, wang
from psdyn_ros.tools.papers.findings import EXPLAINED, FAIL, PASS, Findings

DOCS = ROOT / 'docs' / 'reference'
QUICK = [section for section in SECTIONS if section not in ('saha', 'urdf')]      # those take seconds


@cache
def quick(section):
    """(title, `Findings`) of a paper without its slow steps."""
    return runner.compute([section], quick=True, progress=False)[section]


@pytest.fixture(scope='module')
def committed():
    return rows_of((DOCS / 'papers.md').read_text())


def rows_of(text):
    """Return {(title, quantity): cells} of all tables of a page."""
    rows, title = {}, ''
    for line in text.splitlines():
        title = line[3:] if line.startswith('## ') else title
        cells = [cell.replace(r'\|', '|').strip() for cell in re.split(r'(?<!\\)\|', line)[1:-1]]
        if len(cells) == len(page.HEADER) and cells[0] not in (page.HEADER[0], '---'):
            assert (title, cells[0]) not in rows, cells[0]
            rows[title, cells[0]] = cells
    return rows


def entries_of(papers):
    return [(title, entry) for title, found in papers.values() for _, entry in found.entries]


def numbers(text):
    return [Decimal(number) for number in re.findall(r'-?\d+\.?\d*(?:e[-+]\d+)?', text)]


def assert_same(title, entry, cells):
    """The cells of a page say what the entry says, but for rounding of the last digit."""
    fresh = page.row_of(entry)
    assert cells[2:4] == list(fresh[2:4]) and cells[5] == fresh[5], entry.quantity
    if entry.error:     # rounding errors differ from one computer to another
        assert all(float(number) <= entry.bound for number in numbers(cells[1])), entry.quantity
        return
    assert len(numbers(cells[1])) == len(entry.ours), entry.quantity
    for comp, ref in zip(numbers(fresh[1]), numbers(cells[1])):
        # what is known to differ depends on the computer, where a motion is unstable
        slack = abs(float(ref)) / 20 if entry.verdict == EXPLAINED else 0.0
        assert abs(float(comp - ref)) <= max(1.01 * 10.0 ** ref.as_tuple().exponent, slack), entry.quantity


# --- numbers


@pytest.mark.parametrize('section', thorough(SECTIONS, QUICK))
def test_numbers_are_those_of_the_papers_and_references(section):
    _, found = quick(section)
    assert len(found.entries) >= 3
    assert [entry.quantity for _, entry in found.entries if entry.verdict == FAIL] == []


@pytest.mark.parametrize('section', thorough(SECTIONS, QUICK))
def test_committed_page_has_the_numbers_of_a_fresh_run(section, committed):
    for title, entry in entries_of({section: quick(section)}):
        assert_same(title, entry, committed[title, entry.quantity])


@pytest.mark.long
def test_committed_page_is_complete(committed):
    papers = runner.compute(progress=False)
    fresh = entries_of(papers)
    assert committed.keys() == {(title, entry.quantity) for title, entry in fresh}
    for title, entry in fresh:
        assert entry.verdict != FAIL, entry.quantity
        assert_same(title, entry, committed[title, entry.quantity])
    pictures = {f'{name}.png' for _, found in papers.values() for name in found.plates}
    assert pictures == {path.name for path in (DOCS / 'papers').glob('*')}
    shown = re.findall(r'\]\(papers/(.+?\.png)\)', (DOCS / 'papers.md').read_text())
    assert pictures == set(shown)


def test_committed_page_has_no_wrong_number(committed):
    verdicts = [cells[5] for cells in committed.values()]
    assert not any(verdict.startswith(FAIL) for verdict in verdicts)
    head = (DOCS / 'papers.md').read_text().split('## ')[0]
    ok, explained = (sum(verdict.startswith(kind) for verdict in verdicts) for kind in (PASS, EXPLAINED))
    assert f'{ok} numbers agree, {explained} differ' in head


@pytest.mark.parametrize('name', ['paz_one_loop_415kg', 'paz_four_dof_1063kg'])
def test_machines_are_those_of_the_tests(name):
    assert (findings.DATA / f'{name}.urdf').read_text() == paz_machine(name).xml


# --- verdicts


def test_verdicts():
    found = Findings()
    found.equal('table', 'right', (1.0, 2.0), (1.0, 2.0000004))
    found.equal('table', 'wrong in the last digit', 2.0, 2.000002)
    found.equal('table', 'not a number', np.nan, 2.0)
    found.below('table', 'small error', 1e-9, 1e-8)
    found.below('table', 'large error', (0.0, -2e-8), 1e-8)
    found.below('table', 'no number for an error', np.nan, 1e-8)
    found.differs('table', 'known to differ', 1.0, 2.0)
    assert [entry.verdict for _, entry in found.entries] == [PASS, FAIL, FAIL, PASS, FAIL, FAIL, EXPLAINED]
    text = page.summary({'paper': ('A paper', found)})
    assert text.startswith('A paper\n') and text.endswith('2 ok, 1 explained (differ for a known reason), 4 FAIL')
    with pytest.raises(ValueError, match='right'):
        found.equal('table', 'right', 1.0, 1.0)


@pytest.mark.parametrize('value, form, text', [(-1e-9, '.3f', '0.000'), (-0.001, '.3f', '-0.001'),
                                               (0.25, '.0e', '2e-01')])
def test_zero_has_no_sign(value, form, text):
    found = Findings()
    found.equal('table', 'value', value, value, form=form, bound=0.0)
    (_, entry), = found.entries
    assert page.row_of(entry)[1] == text


# --- command line


def test_command(tmp_path, capsys):
    assert cli.main(['papers', '--only', 'wang', '--output', str(tmp_path / 'new' / 'docs')]) == 0
    out, errors = capsys.readouterr()
    assert wang.TITLE in out and 'tau_a0 at 2.5 s [N]' in out and ' 0 FAIL' in out
    assert 'wang' in errors and '5/5' in errors     # the progress bar
    text = (tmp_path / 'new' / 'docs' / 'papers.md').read_text()
    assert 'psdyn papers --only wang' in text.splitlines()[2]
    for target in re.findall(r'\]\((.+?)\)', text):
        assert (tmp_path / 'new' / 'docs' / target).read_bytes().startswith(b'\x89PNG')
    assert {title for title, _ in rows_of(text)} == {wang.TITLE}


@pytest.mark.long
def test_a_wrong_number_is_an_exit_code(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(wang.FLOPS, 'theta', 77)
    assert cli.main(['papers', '--only', 'wang', '--output', str(tmp_path)]) == 1
    assert '2126' in capsys.readouterr().out
    assert re.search(r'\| 2126 \| 2125 \| paper \| 1e\+00 \| FAIL', (tmp_path / 'papers.md').read_text())


def test_arguments_that_do_not_fit(tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(['papers', '--only', 'wang,wong'])
    assert end.value.code == 2
    assert "'wong': expected some of paz,saha,wang,alazard,urdf" in capsys.readouterr().err
    in_the_way = tmp_path / 'file'
    in_the_way.write_text('')
    assert cli.main(['papers', '--only', 'wang', '--output', str(in_the_way)]) == 2
    assert f"Not a directory: '{in_the_way}" in capsys.readouterr().err


def test_pictures_repeat(tmp_path):
    """So that a new run changes the files of those only whose numbers changed."""
    found = Findings()
    axes = found.plate('name', 'title')[0, 0]
    axes.plot((0, 1), (2, 3), label='a line')
    for name in ('first.png', 'second.png'):
        found.plates['name'].write(tmp_path / name)
    assert (tmp_path / 'first.png').read_bytes() == (tmp_path / 'second.png').read_bytes()
