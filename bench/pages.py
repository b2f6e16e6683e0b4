"""Tables of README.md and docs/reference/speed.md from the stored run: `python -m bench.pages` writes them again."""

import json
from pathlib import Path

from bench.comparison import OURS
from bench.general import HINTED

ROOT = Path(__file__).parent.parent
PINOCCHIO = 'Pinocchio constraintDynamics'
CRANE = (
    ('native', 'Pinocchio, closed-form closure + CRBA or RNEA', 'Pinocchio closure + CRBA', 'Pinocchio closure + RNEA'),
    ('native', 'Pinocchio `constraintDynamics`, 2 iterations', PINOCCHIO, None),
    ('native', 'MuJoCo `mj_forward`, `connect` (error 3e-4); `mj_inverse` of the open tree', 'MuJoCo mj_forward',
     'MuJoCo mj_inverse (open tree)'),
    ('python', 'called from Python: psdyn_ros, all checks', OURS, OURS),
    ('python', 'called from Python: Pinocchio `constraintDynamics`; closure + RNEA', PINOCCHIO,
     'Pinocchio closure + RNEA'))
MACHINES = {'five_bar': 'five-bar', 'excavator': 'excavator: 17 links, 5 loops', 'pkm_2pur2rpu': '2PUR-2RPU',
            'delta_robot': 'delta robot', 'stewart_platform': '6-UPS platform', 'rssr': 'RSSR'}
BEGIN, END = '<!-- stored run: {} -->', '<!-- end -->'


def crane(results):
    """Return the table of the crane: best rounds, and medians of ratios to ours in the same language."""
    rows = {(row['task'], row['mode'], row['engine']): row for row in results['crane']}

    def cells(task, mode, engine, bold=''):
        row = rows.get((task, mode, engine))
        return f'{bold}{row["best_us"]:.2f} us{bold} | {row["ratio"]:.3g}' if row else '|'
    lines = ['| 4-DoF crane, one evaluation | forward dynamics | ratio | inverse dynamics | ratio |',
             '|---|---|---|---|---|',
             f'| **psdyn_ros** | {cells("forward", "native", OURS, "**")} | {cells("inverse", "native", OURS, "**")} |']
    return '\n'.join(lines + [f'| {text} | {cells("forward", mode, forward)} | {cells("inverse", mode, inverse)} |'
                              for mode, text, forward, inverse in CRANE])


def machines(results):
    """Return the table of machines with loops of any kind: best rounds, in brackets ratios to Pinocchio."""
    forward = [row for row in results['general'] if row['task'] == 'forward']
    rows = {(row['machine'], row['mode'], row['engine']): row for row in forward}
    lines = ['| forward dynamics | psdyn_ros, native | with a hint | `constraintDynamics`, native '
             '| psdyn_ros, Python | with a hint | `constraintDynamics`, Python |',
             '|---|---|---|---|---|---|---|']
    for machine, text in MACHINES.items():
        cells = []
        for mode in ('native', 'python'):
            peer = rows[machine, mode, PINOCCHIO]
            for engine in (OURS, HINTED):
                row = rows[machine, mode, engine]
                cells.append(f'{row["best_us"]:.3g} us ({row["ratio"] / peer["ratio"]:.2f})')
            cells.append(f'{peer["best_us"]:.3g} us')
        lines.append(f'| {text} | {" | ".join(cells)} |')
    return '\n'.join(lines)


TABLES = {'crane': crane, 'machines': machines}


def filled(text, results):
    """Return the text of a page with its tables as the results have them."""
    for name, table in TABLES.items():
        begin = BEGIN.format(name)
        kept, rest = text.split(begin + '\n', 1) if begin in text else (text, '')
        text = f'{kept}{begin}\n\n{table(results)}\n\n{END}{rest.split(END, 1)[1]}' if rest else kept
    return text


def pages():
    """Yield (path, text as it should be) of each page with tables."""
    results = json.loads((ROOT / 'bench' / 'results' / 'results.json').read_text())
    for path in (ROOT / 'README.md', ROOT / 'docs' / 'reference' / 'speed.md'):
        yield path, filled(path.read_text(), results)


if __name__ == '__main__':
    for page, content in pages():
        page.write_text(content)
