"""Text that is not a machine: broken, hostile, too large, or in an encoding that is not UTF-8."""

import time
import tracemalloc

import pytest
from support.one_loop import edit, one_loop

import psdyn_ros
from psdyn_ros import ModelError, PsdynError, XmlError
from psdyn_ros.model.locate import find_machine

XML = one_loop().xml
PROLOGUE = '<?xml version="1.0"?>\n'
LAUGHS = '<!DOCTYPE robot [<!ENTITY a "ha">' + ''.join(
    f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in zip('abcdefgh', 'bcdefghi')) + ']>\n'


def written(tmp_path, content, name='machine.urdf'):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_file_path_object_and_text_give_the_same_machine(tmp_path):
    path = written(tmp_path, PROLOGUE + XML)
    by_text = psdyn_ros.load(PROLOGUE + XML).gravity_forces([0.3])
    for source in (path, str(path), '\n  ' + XML, '\ufeff' + PROLOGUE + XML):
        assert psdyn_ros.load(source).gravity_forces([0.3]) == by_text


@pytest.mark.parametrize('broken, words', [
    (XML[:-20], r'not well-formed XML.*line \d+'),
    (XML.replace('</constraint>', ''), r'not well-formed XML: mismatched tag: line \d+'),
    (edit(XML, ('<mass value="12.0"', '<mass value="12.0" value="13"')), 'duplicate attribute'),
    (edit(XML, ('<link name="rod_link">', '<link name=rod_link>')), 'not well-formed'),
    (XML + XML, 'junk after document element'),
    ('<', 'not well-formed XML'),
    ('<robot>&nothing;</robot>', 'undefined entity|DTD or entities'),
    ('<robot name="a\x00b"/>', 'not well-formed XML'),
    ('<robot name="\ud800"/>', 'not XML text'),
])
def test_broken_xml(broken, words):
    with pytest.raises(XmlError, match=words):
        psdyn_ros.load(broken)


def test_another_root_element():
    with pytest.raises(ModelError, match=r'line 1: the root element is <sdf>; a URDF has <robot>'):
        psdyn_ros.load('<sdf version="1.7"/>')


@pytest.mark.parametrize('hostile', [
    PROLOGUE + LAUGHS + '<robot name="&i;"/>',
    '<!DOCTYPE robot [<!ENTITY secret SYSTEM "file:///etc/hostname">]><robot name="&secret;"/>',
    '<!DOCTYPE robot SYSTEM "robot.dtd"><robot name="a"/>',
    '<!DOCTYPE robot>' + XML,
    '<!DOCTYPE robot [<!ENTITY % more SYSTEM "more.dtd"> %more;]><robot name="a"/>',
], ids=['laughs', 'external entity', 'external DTD', 'empty DTD', 'parameter entity'])
@pytest.mark.parametrize('as_file', [True, False])
def test_entities_and_document_types_are_refused(hostile, as_file, tmp_path):
    with pytest.raises(XmlError, match='DTD or entities is refused'):
        psdyn_ros.load(written(tmp_path, hostile) if as_file else hostile)


def test_files_of_more_than_8_mib_are_refused_unread(tmp_path):
    path = tmp_path / 'large.urdf'
    with open(path, 'wb') as file:
        file.truncate(50 * 2**20)
    with limited_memory(2**20), pytest.raises(ModelError, match=r'52428800 bytes; at most 8388608'):
        psdyn_ros.load(path)


def test_texts_of_more_than_8_mib_are_refused():
    with pytest.raises(XmlError, match=r'at most 8388608 bytes'):
        psdyn_ros.load(XML + ' ' * 2**23)
    # 3 bytes a letter: below the limit in letters, above it in bytes
    with pytest.raises(XmlError, match=r'at most 8388608 bytes'):
        psdyn_ros.load('<robot name="' + '\u20ac' * 2**22 + '"/>')


def test_a_file_without_a_size_is_read_no_further_than_the_limit():
    with limited_memory(40 * 2**20), pytest.raises(ModelError, match='at most 8388608'):
        psdyn_ros.load('/dev/zero')


def test_largest_accepted_text_is_a_comment_away(tmp_path):
    padded = XML.replace('</robot>', '<!--' + '-x' * (2**22 - 2**15) + '--></robot>')
    assert psdyn_ros.load(written(tmp_path, padded)).dof == 1


@pytest.mark.parametrize('nested', [
    '<a>' * 10**6,
    '<robot>' + '<link name="a">' * 2000 + '</link>' * 2000 + '</robot>',
], ids=['never closed', 'closed'])
def test_absurd_nesting(nested):
    with limited_memory(64 * 2**20), pytest.raises(XmlError, match=r'line 1: elements nested deeper than 64'):
        psdyn_ros.load(nested)


@pytest.mark.long
def test_absurd_numbers_of_elements():
    with limited_memory(200 * 2**20), pytest.raises(XmlError, match='more than [0-9]+ elements'):
        psdyn_ros.load('<robot>' + '<a/>' * (2**21 - 100) + '</robot>')


def test_more_than_2000_links():
    links = ''.join(f'<link name="link{k}"/>' for k in range(2001))
    with pytest.raises(ModelError, match='2001 links; at most 2000'):
        psdyn_ros.load(f'<robot name="long">{links}</robot>')


def test_absurd_attributes():
    for old in ('xyz="', 'name="', 'link="'):
        with pytest.raises(XmlError, match=r'line \d+: an attribute of <\w+> has more than 4096 characters'):
            psdyn_ros.load(edit(XML, (old, old + '1 ' * 10**6)))
    with pytest.raises(ModelError, match='3 finite number') as caught:
        psdyn_ros.load(edit(XML, ('xyz="', 'xyz="' + '1 ' * 1000)))
    assert len(str(caught.value)) < 400


def test_absurd_names_do_not_stall_the_suggestions():
    # the nearest name is sought by a comparison whose time grows with the square of the length
    names = [''.join('ab'[(k * k >> j) & 1] for k in range(4000)) for j in range(9)]
    links = ''.join(f'<link name="{name}"/>' for name in names)
    joint = f'<joint name="j" type="fixed"><parent link="{names[0]}x"/><child link="{names[1]}"/></joint>'
    with limited_memory(2**25), pytest.raises(psdyn_ros.UnknownNameError, match='no such link') as caught:
        psdyn_ros.load(f'<robot name="r">{links}{joint}</robot>')
    assert len(str(caught.value)) < 6000


@pytest.mark.parametrize('encoding', ['utf-16', 'utf-16-le', 'utf-32', 'latin-1'])
def test_files_in_other_encodings_are_refused(encoding, tmp_path):
    text = f'<?xml version="1.0" encoding="{encoding}"?>\n' + edit(XML, ('one_loop', 'Kran f\u00fcr Holz'))
    with pytest.raises(ModelError, match='UTF-8|not well-formed'):
        psdyn_ros.load(written(tmp_path, text.encode(encoding)))


@pytest.mark.parametrize('declared', ['utf-8', 'utf-16', 'iso-8859-1', 'us-ascii', 'koi8-r'])
def test_the_encoding_that_a_text_declares_is_void(declared):
    """A text is decoded already, whatever its prologue says of the bytes that it once was."""
    text = f'<?xml version="1.0" encoding="{declared}"?>\n' + edit(XML, ('one_loop', 'Kran f\u00fcr Holz'))
    assert psdyn_ros.load(text).name == 'Kran f\u00fcr Holz'


def test_utf_8_with_byte_order_mark(tmp_path):
    text = edit(XML, ('one_loop', 'Kran f\u00fcr Holz'))
    assert psdyn_ros.load(written(tmp_path, text.encode('utf-8-sig'))).name == 'Kran f\u00fcr Holz'


@pytest.mark.parametrize('content', [b'', b'\x00' * 100, b'\x7fELF\x02\x01', bytes(range(256)), b'   \n', b'name: x'])
def test_files_that_are_no_xml(content, tmp_path):
    with pytest.raises(ModelError, match='not well-formed XML|UTF-8'):
        psdyn_ros.load(written(tmp_path, content))


def test_paths_that_cannot_be_read(tmp_path):
    for path in (tmp_path / 'missing.urdf', tmp_path, '', 'a\0b', 'x' * 10**5):
        with pytest.raises(ModelError, match='no such file or machine|cannot read'):
            psdyn_ros.load(path)


def test_a_machine_of_the_package_is_found_by_its_name():
    assert psdyn_ros.load('five_bar').name == psdyn_ros.load(find_machine('five_bar')).name == 'five_bar'
    with pytest.raises(ModelError, match="'five_bra': no such file or machine; did you mean 'five_bar'"):
        psdyn_ros.load('five_bra')


@pytest.mark.parametrize('source', [None, 5, XML.encode(), [XML], bytearray(b'<robot/>')])
def test_what_is_neither_path_nor_text(source):
    with pytest.raises(PsdynError, match='expected a path or XML text'):
        psdyn_ros.load(source)


def test_xacro_is_asked_for_by_name(tmp_path, monkeypatch):
    path = written(tmp_path, XML, 'machine.urdf.xacro')
    monkeypatch.setitem(__import__('sys').modules, 'xacro', None)      # as if it were not installed
    with pytest.raises(XmlError, match='needs xacro, which is not installed'):
        psdyn_ros.load(path)


def test_xacro_is_expanded_where_it_is_installed(tmp_path, monkeypatch):
    path = written(tmp_path, 'not looked at', 'machine.urdf.xacro')
    monkeypatch.setitem(__import__('sys').modules, 'xacro', FakeXacro)
    FakeXacro.text = XML
    assert psdyn_ros.load(path).name == 'one_loop'
    FakeXacro.text = None
    with pytest.raises(XmlError, match="xacro cannot expand '.*machine.urdf.xacro'.*undefined property"):
        psdyn_ros.load(path)


class FakeXacro:
    """The one function of xacro that is called."""

    text = None

    @staticmethod
    def process_file(path):
        if FakeXacro.text is None:
            raise RuntimeError('undefined property')
        from xml.dom.minidom import parseString
        return parseString(FakeXacro.text)


class limited_memory:
    """Fails when Python allocates more than `most` bytes in the block, or when it takes absurdly long."""

    def __init__(self, most):
        self.most = most

    def __enter__(self):
        tracemalloc.start()
        self.start = time.monotonic()

    def __exit__(self, *_):
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < self.most
        assert time.monotonic() - self.start < 60
