"""The structure of a machine as a drawing: links, joints by their role, and loops, as SVG."""

import html

from .topology import ACTUATED, DEPENDENT, FIXED, FLOATING, PASSIVE, topology

CHARACTER, LINE = 7.3, 15.0         # px of the text
PAD, GAP, ROW = 10.0, 26.0, 54.0    # px within boxes, between columns, between rows
BOX = 38.0                          # px, height
FILLS = {ACTUATED: '#f6b26b', PASSIVE: '#ffffff', DEPENDENT: '#dfe5ec', FIXED: '#f7f7f7', FLOATING: '#dcd3ec'}
# of a loop: its color, in turn
COLORS = ('#0072B2', '#D55E00', '#009E73', '#8E24AA', '#A66F00', '#C2185B', '#00838F', '#5D4037')
LEGEND = ((ACTUATED, 'actuated'), (DEPENDENT, 'follows others by a loop'), (PASSIVE, 'passive: moves freely'),
          (FIXED, 'fixed'), (FLOATING, 'floating base'))


class _Item:
    """A link, a joint or a closure: lines of text, a fill, where it is, and what follows it."""

    def __init__(self, lines, fill, kind):
        self.lines, self.fill, self.kind = lines, fill, kind
        self.width = 2.0 * PAD + CHARACTER * max(map(len, lines))
        self.x = self.y = self.gap = 0.0
        self.size = 0
        self.children = []


def drawing(manipulator):
    """Return the SVG text of the structure of a `Manipulator`."""
    description, found = manipulator.machine.description, topology(manipulator)
    numbers = {name: k for k, name in enumerate(found.loops)}
    links = {name: _Item([name, _mass(link)], '#ffffff', 'link') for name, link in description.links.items()}
    on_loops = {joint.name: [numbers[name] for name, joints in found.loops.items() if joint.name in joints]
                for joint in found.joints}
    edges, lines = [], []
    for joint in found.joints:
        role = found.roles[joint.name]
        item = _Item([joint.name, f'{joint.type}, {role}' if role == PASSIVE else joint.type], FILLS[role], role)
        links[joint.parent].children.append(item)
        item.children.append(links[joint.child])
        edges += [(links[joint.parent], item, on_loops[joint.name]), (item, links[joint.child], on_loops[joint.name])]
    for name, closure in description.closures.items():
        item = _Item([name, f'{closure.type}, loop {numbers[name] + 1}'], '#ffffff', 'closure')
        links[closure.child].children.append(item)
        edges.append((links[closure.child], item, [numbers[name]]))
        lines.append((item, links[closure.parent], numbers[name]))
    root = next(links[name] for name in description.links
                if all(joint.child != name for joint in description.joints.values()))
    items = _placed(root)
    width = max(item.gap for item in items) + GAP + PAD
    height = max(item.y for item in items) + ROW
    parts = [_path(*edge) for edge in edges] + [_arc(*line) for line in lines] + [_box(item) for item in items]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
            f'aria-label="Structure of {html.escape(manipulator.name)}">\n' + '\n'.join(parts) + '\n</svg>')


def legend(manipulator):
    """Return [(fill, text, kind)] of the roles that a machine has."""
    roles = set(topology(manipulator).roles.values())
    return [(FILLS[role], text, role) for role, text in LEGEND if role in roles]


def _placed(root):
    """Place all items in columns by their distance from the root, the longest chain on the first row; return them."""
    columns, rows, order, stack = [], 0, [], [(root, 0)]
    _sort(root)
    while stack:
        item, column = stack.pop()
        order.append((item, column))
        columns += [0.0] * (column + 1 - len(columns))
        columns[column] = max(columns[column], item.width)
        item.y = PAD + 0.5 * BOX + ROW * rows
        rows += not item.children
        stack += [(child, column + 1) for child in reversed(item.children)]
    for item, column in order:
        item.x = PAD + sum(columns[:column]) + GAP * column
        item.gap = item.x + columns[column]
    return [item for item, _ in order]


def _sort(root):
    """Sort what follows each item by how much follows it."""
    found = [root]
    for item in found:
        found += item.children
    for item in reversed(found):
        item.size = 1 + sum(child.size for child in item.children)
        item.children.sort(key=lambda child: -child.size)


def _mass(link):
    return '' if link.inertial is None else f'{link.inertial.mass:.4g} kg'


def _box(item):
    """Return the SVG of an item: joints round, links square, closures dashed."""
    radius = 4.0 if item.kind == 'link' else 0.5 * BOX
    dashed = ' stroke-dasharray="4 3"' if item.kind in ('closure', PASSIVE) else ''
    color = {PASSIVE: '#c00000', FIXED: '#aaaaaa'}.get(item.kind, '#333333')
    text = [line for line in item.lines if line]
    top = item.y - 0.5 * LINE * (len(text) - 1) + 4.5
    return (f'<g><rect x="{item.x:.1f}" y="{item.y - 0.5 * BOX:.1f}" width="{item.width:.1f}" height="{BOX:g}" '
            f'rx="{radius:g}" fill="{item.fill}" stroke="{color}" stroke-width="{2 if item.kind == "link" else 1.2}"'
            f'{dashed}/>' + ''.join(
                f'<text x="{item.x + 0.5 * item.width:.1f}" y="{top + LINE * k:.1f}" text-anchor="middle" '
                f'class="{"name" if k == 0 else "more"}">{html.escape(line)}</text>' for k, line in enumerate(text))
            + '</g>')


def _path(start, end, loops):
    """Return the lines between neighbours, one of each loop that they are on."""
    x0, x1 = start.x + start.width, end.x
    middle = max(x1 - 0.7 * GAP, x0)
    colors = [COLORS[k % len(COLORS)] for k in loops] or ['#555555']
    shift = [4.0 * (k - 0.5 * (len(colors) - 1)) for k in range(len(colors))]
    return ''.join(
        f'<path d="M{x0:.1f} {start.y + d:.1f}H{middle + d:.1f}V{end.y + d:.1f}H{x1:.1f}" fill="none" stroke="{color}" '
        f'stroke-width="{2.2 if loops else 1.3}"/>' for color, d in zip(colors, shift))


def _arc(item, link, loop):
    """Return the dashed line from a closure back to the link that it holds, through the spaces between the boxes."""
    offset = 4.0 * (loop % 3 - 1)
    gap = item.gap + 0.7 * GAP + offset
    channel = link.y + (0.5 * ROW + offset) * (-1.0 if link.y > item.y else 1.0)
    end = link.y + 0.5 * BOX * (-1.0 if link.y > item.y else 1.0)
    middle = link.x + 0.5 * link.width + 4.0 * offset
    return (f'<path d="M{item.x + item.width:.1f} {item.y:.1f}H{gap:.1f}V{channel:.1f}H{middle:.1f}V{end:.1f}" '
            f'fill="none" stroke="{COLORS[loop % len(COLORS)]}" stroke-width="2.2" stroke-dasharray="6 4"/>')
