"""What the README says of commands, parameters and files is so."""

import re
import runpy
import sys

import pytest
from support.paths import ROOT

README = (ROOT / 'README.md').read_text()
PROOF = (ROOT / 'docs' / 'reference' / 'proof.md').read_text()


def test_parameter_tables_are_those_of_the_nodes():
    pytest.importorskip('rclpy', reason='the tables are part of the nodes')
    from psdyn_ros.nodes.parameter_tables import markdown, tables
    pages = [README, *(path.read_text() for path in (ROOT / 'docs').rglob('*.md'))]
    for table in tables().values():
        for line in markdown('', table):
            assert any(line in page for page in pages) or not line.startswith('|')


CONFIGURATIONS = ''.join(path.read_text() for path in sorted((ROOT / 'config').rglob('*.yaml')))


@pytest.mark.parametrize('module', sorted(set(re.findall(r'python3 -m (psdyn_ros[.\w]+\w)', CONFIGURATIONS))))
def test_commands_that_the_configurations_name_print_tables(module, monkeypatch, capsys):
    if module.startswith('psdyn_ros.nodes'):
        pytest.importorskip('rclpy', reason='the tables are part of the nodes')
    monkeypatch.delitem(sys.modules, module, raising=False)     # runpy warns of a module that is there already
    try:
        runpy.run_module(module, run_name='__main__')
    except SystemExit as end:
        assert not end.code
    assert '| parameter |' in capsys.readouterr().out


def test_make_targets_exist():
    makefile = (ROOT / 'Makefile').read_text()
    named = set(re.findall(r'`?make ([a-z-]+)', README))
    assert {'demo', 'test', 'bench'} <= named
    for target in named:
        assert re.search(rf'^{target}:', makefile, re.MULTILINE), target


@pytest.mark.parametrize(
    'page', [ROOT / 'README.md', *sorted((ROOT / 'docs').rglob('*.md'))], ids=lambda page: page.name)
def test_linked_files_and_sections_exist(page):
    for target, section in re.findall(r'\]\(([^)#: ]*)(#[^)]+)?\)', page.read_text()):
        linked = page.parent / target if target else page
        assert linked.exists(), target
        if section:
            headings = re.findall(r'^#+ (.*)$', linked.read_text(), re.MULTILINE)
            assert section[1:] in [re.sub(r'[^\w -]', '', one.lower()).replace(' ', '-') for one in headings], section


PACKAGE = ROOT / 'psdyn_ros'
ROOMS = sorted(page.parent for page in PACKAGE.rglob('README.md') if page.parent.name != 'cli')


def test_every_room_has_a_page_of_at_most_60_lines():
    rooms = {path.parent for path in PACKAGE.glob('*/**/__init__.py')}
    assert rooms - {page.parent for page in PACKAGE.rglob('README.md')} == set()
    pages = [path for path in PACKAGE.rglob('README.md') if '__pycache__' not in path.parts]
    assert {page: count for page in pages if (count := len(page.read_text().splitlines())) > 60} == {}


@pytest.mark.parametrize('room', ROOMS, ids=lambda room: room.relative_to(PACKAGE).as_posix())
def test_readme_of_a_room_names_its_files(room):
    named = re.findall(r'`(?:\w+/)*(\w+)(?:\.py)?`', (room / 'README.md').read_text())
    assert {path.stem for path in room.glob('*.py')} - {'__init__', '__main__', *named} == set()


def test_readme_is_short():
    assert len(README.splitlines()) <= 130 and len(README.split()) <= 1500


def test_test_files_named_as_proof_exist():
    paths = re.findall(r'`(test/[a-z0-9_/]+(?:\.py)?)', README + PROOF)
    assert len(paths) > 20
    for path in paths:
        assert (ROOT / path).is_file() or (ROOT / path).is_dir(), path


def test_the_examples_run(monkeypatch):
    monkeypatch.chdir(ROOT)
    for page in (README, (ROOT / 'docs' / 'reference' / 'api.md').read_text()):
        for block in re.findall(r'```python\n(.*?)```', page, re.DOTALL):
            exec(compile(block, 'a page', 'exec'), {})


def test_names_of_the_api_exist():
    import psdyn_ros
    section = (ROOT / 'docs' / 'reference' / 'api.md').read_text()
    for name in re.findall(r'^\| `([a-z_]+)\(', section, re.MULTILINE):
        assert hasattr(psdyn_ros, name) or hasattr(psdyn_ros.Manipulator, name), name


def test_the_page_of_parameters_is_what_its_script_writes():
    script = runpy.run_path(str(ROOT / 'scripts' / 'parameter_tables.py'))
    assert script['page']() == script['PAGE'].read_text()


def test_the_pages_of_nodes_have_the_tables_that_the_script_writes():
    pytest.importorskip('rclpy', reason='the tables are part of the nodes')
    pages = runpy.run_path(str(ROOT / 'scripts' / 'parameter_tables.py'))['node_pages']()
    assert pages and all(path.read_text() == text for path, text in pages.items())


def test_tables_of_speed_are_those_of_the_stored_run():
    from bench.pages import pages
    for path, text in pages():
        assert path.read_text() == text, f'{path.name}: python -m bench.pages writes its tables again'
        assert '| **psdyn_ros** | **0.' in text
