"""Every fault, refusal and error has its advice, and the page of troubleshooting is what the tables give."""

import ast

import pytest
from support.paths import ROOT

from psdyn_ros import cli
from psdyn_ros.control.safety import troubleshooting_page
from psdyn_ros.control.safety.fault_table import ROWS
from psdyn_ros.model import errors, troubleshooting
from psdyn_ros.model.troubleshooting import ERRORS, FAULTS, NODES, REFUSALS, advice, error_advice

SOURCES = list((ROOT / 'psdyn_ros').rglob('*.py'))


def error_classes():
    """Return the names of all classes that derive from PsdynError, by the sources."""
    bases = {}
    for path in SOURCES:
        for one in ast.walk(ast.parse(path.read_text())):
            if isinstance(one, ast.ClassDef):
                bases.setdefault(one.name, set()).update(getattr(base, 'id', '') for base in one.bases)
    found, before = {'PsdynError'}, set()
    while found != before:
        before = set(found)
        found |= {name for name, of in bases.items() if of & found}
    return found


def test_the_page_is_what_the_tables_give():
    assert (ROOT / 'docs' / 'reference' / 'troubleshooting.md').read_text() == troubleshooting_page.page()


def test_every_fault_of_the_fault_table_has_advice_and_no_other():
    assert set(FAULTS) == {row.id for row in ROWS}


def test_every_error_class_has_advice_and_no_other():
    assert set(ERRORS) == error_classes()


@pytest.mark.parametrize('name', [name for name, one in vars(troubleshooting).items()
                                  if isinstance(one, troubleshooting.Refusal)])
def test_every_refusal_is_used_by_the_code_and_listed(name):
    assert getattr(troubleshooting, name) in REFUSALS + NODES
    users = [path for path in SOURCES if path.name != 'troubleshooting.py' and f'{name}.text' in path.read_text()]
    assert users


def test_advice_follows_ids_and_refusals_of_a_message():
    moves = troubleshooting.NOT_AT_REST.text.format(name='a', rate=1, most=2)
    text = f'enabling is refused: F18: no state; {moves}; F18: b'
    assert advice(text) == [f'F18: {FAULTS["F18"].action}', troubleshooting.NOT_AT_REST.action]
    assert advice('enabled') == [] and advice('F99: none') == []


def test_advice_of_an_error_of_somebody_else_is_that_of_its_base():
    class TheirError(errors.TreeError):
        pass
    assert error_advice(TheirError()) == ERRORS['TreeError']


def test_a_command_prints_what_to_do_below_its_error(tmp_path, capsys):
    file = tmp_path / 'two_roots.urdf'
    file.write_text('<robot name="r"><link name="a"/><link name="b"/></robot>')
    assert cli.main(['check', str(file)]) == 2
    *_, message, todo = capsys.readouterr().err.splitlines()
    assert message.startswith('psdyn: TreeError: ') and todo == f'what to do: {ERRORS["TreeError"]}'
