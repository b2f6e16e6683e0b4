"""What the benchmark says: tables for the terminal, and the targets with their verdicts."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

from bench import native
from bench.comparison import OURS
from bench.general import DYNAMICS, HINTED
from bench.pinocchio_peer import ITERATIONS, LCABA_ITERATIONS, LCABA_MU, MU

# forward dynamics, times constraintDynamics, which is given closed positions
GENERAL_BOUNDS = {
    ('five_bar', 'native', OURS): 1.0, ('excavator', 'native', OURS): 1.0, ('five_bar', 'python', OURS): 1.0,
    ('pkm_2pur2rpu', 'native', HINTED): 1.0, ('pkm_2pur2rpu', 'python', HINTED): 1.0,
    ('pkm_2pur2rpu', 'python', OURS): 1.2,
    ('delta_robot', 'python', HINTED): 1.5, ('stewart_platform', 'python', HINTED): 1.5,
    ('rssr', 'python', HINTED): 1.5,
    ('delta_robot', 'python', OURS): 3.0, ('stewart_platform', 'python', OURS): 3.0, ('rssr', 'python', OURS): 3.0,
}
TRIANGLE_US = {'forward': 0.287, 'inverse': 0.18}  # of the crane, best round, before there were other loops


def about(quick):
    return {
        'quick': quick,
        'processor': _processor(),
        'cores': len(os.sched_getaffinity(0)),
        'load': os.getloadavg()[0],
        'versions': {'python': platform.python_version(),
                     **{name: version(name) for name in ('numpy', 'numba', 'pin', 'mujoco')}},
        'settings': {
            'constraintDynamics': f'{ITERATIONS} iterations, mu {MU:g}',
            'lcaba': f'{LCABA_ITERATIONS} iterations, mu {LCABA_MU:g}',
            'mj_forward': 'connect, impedance 0.9999, contacts and islands off',
            'native Pinocchio': 'g++ ' + ' '.join(native.OPTIMISE + native.NARROW),
        },
    }


def about_text(record):
    versions = ', '.join(f'{name} {number}' for name, number in record['versions'].items())
    busy = record['load'] > 0.5
    return f'''{record['processor']}, {record['cores']} cores; {versions}
load average {record['load']:.1f}{': others compute beside us, trust ratios only' if busy else ''}
us per state, median of interleaved rounds; ratio: times as long as ours, median over the rounds.
error: max|a - ref| / (1 + max|ref|), ours against dense numpy on Pinocchio's tree, the others against ours.
constraintDynamics, lcaba and MuJoCo are given joint positions and velocities that close the loops already;
ours and the rows named closure start from the strokes. With loops of any kind all of Pinocchio's rows are given
closed positions, and 'rates by K' solves for rates and accelerations of the tree.'''


def _processor():
    lines = Path('/proc/cpuinfo').read_text().splitlines() if Path('/proc/cpuinfo').exists() else []
    names = [line.split(':', 1)[1].strip() for line in lines if line.startswith('model name')]
    return names[0] if names else platform.processor()


def table(name, records):
    return _TABLES[name](records)


def _engines(*of):
    """The table of what has these columns before its times."""
    return lambda records: _text(
        (*of, 'called in', 'engine', 'median us', 'best us', 'ratio', 'error', ''),
        [(*(r[name] for name in of), r['mode'], r['engine'], _us(r['median_us']), _us(r['best_us']), _ratio(r),
          _error(r), r.get('note') or r['verdict']) for r in records])


def _chains(records):
    """One line for each engine, one column for each size."""
    sizes = sorted({r['loops'] for r in records})
    cells = {(r['task'], r['mode'], r['engine'], r['loops']): r for r in records}
    lines = []
    for task, mode, engine in dict.fromkeys((r['task'], r['mode'], r['engine']) for r in records):
        line = [cells.get((task, mode, engine, size)) for size in sizes]
        errors = [r['error'] for r in line if r and r['error'] is not None]
        verdicts = dict.fromkeys(r['note'] or r['verdict'] for r in line if r)
        lines.append((task, mode, engine, *(_us(r and r['median_us']) for r in line),
                      f'{max(errors):.0e}' if errors else '', ', '.join(verdicts)))
    return _text(('task', 'called in', 'engine', *(f'n={size}' for size in sizes), 'error', ''), lines)


def _batch(records):
    return _text(('machine', 'task', 'native us', 'batch us', 'batch/native', 'cores', 'load'), [
        (r['machine'], r['task'], _us(r['native_us']), _us(r['batch_us']), f'{r["ratio"]:.2f}', r['cores'],
         f'{r["load"]:.1f}') for r in records])


def _cost(records):
    return _text(('task', 'loops', 'us', 'us per module', 'against n=8'), [
        (r['task'], r['loops'], _us(r['us']), _us(r['us_per_module']), f'{r["against_8"]:.2f}')
        for r in records])


def _modules(records):
    """One line for each kind of loop and engine: time per module for each size, and its growth."""
    sizes = sorted({r['modules'] for r in records})
    cells = {(r['kind'], r['task'], r['engine'], r['modules']): r for r in records}
    lines = []
    for key in dict.fromkeys((r['kind'], r['task'], r['engine']) for r in records):
        line = [cells[(*key, size)] for size in sizes]
        lines.append((*key, *(_us(r['us_per_module']) for r in line), f'{line[-1]["growth"]:.2f}',
                      f'{line[-1]["ratio"]:.1f}', f'{max(r["error"] for r in line):.0e}'))
    first, last = records[0]['against'], sizes[-1]
    return 'us per module\n' + _text(
        ('chain of', 'task', 'engine', *(f'n={size}' for size in sizes), f'n={last} / n={first}',
         f'ratio, n={last}', 'error'), lines)


def _derivatives(records):
    return _text(('machine', 'DoF', 'task', 'median us', 'best us', 'times forward dynamics'), [
        (r['machine'], r['dof'], r['task'], _us(r['median_us']), _us(r['best_us']), f'{r["ratio_to_forward"]:.2f}')
        for r in records])


def _startup(records):
    return _text(('kernels', 'compile cache', 'import s', 'load s', 'first calls s', 'total s'), [
        (r['kernels'], r['cache'], *(f'{r[key]:.2f}' for key in ('import_s', 'load_s', 'first_calls_s', 'total_s')))
        for r in records])


def _hydraulics(record):
    return '\n\n'.join((
        _text(('part', 'median us', 'best us'), [
            (r['part'], _us(r['median_us']), _us(r['best_us'])) for r in record['cost']]),
        _text(('method', 'settings', 'seconds for 3', 'times real time', 'strokes mm', 'pressures %'), [
            (r['method'], r['settings'], f'{r["s"]:.3g}', f'{r["faster"]:.3g}', f'{r["strokes_mm"]:.1e}',
             f'{r["pressures_percent"]:.1e}') for r in record['cycle']])))


def _closure(record):
    return f'{record["strokes"]} strokes: a rod eye is at most {record["largest_m"]:.1e} m from its pin'


_TABLES = {'crane': _engines('task'), 'chains': _chains, 'batch': _batch, 'cost': _cost,
           'general': _engines('machine', 'task'), 'modules': _modules, 'jacobians': _engines('machine'),
           'derivatives': _derivatives, 'hydraulics': _hydraulics, 'startup': _startup, 'closure': _closure}


def targets(results):
    """Each target whose part was run: what it asks, what was measured, whether it is met."""
    crane = {(r['task'], r['mode'], r['engine']): r for r in results.get('crane', ())}
    cost = {(r['task'], r['loops']): r for r in results.get('cost', ())}
    startup = {(r['kernels'], r['cache']): r for r in results.get('startup', ())}
    records = []

    def target(what, measured, bound, at_least=False, form='{:.2f}'):
        met = measured >= bound if at_least else measured <= bound
        asked = ('>= ' if at_least else '<= ') + form.format(bound)
        records.append({'what': what, 'measured': measured, 'bound': bound, 'met': bool(met),
                        'text': form.format(measured), 'asked': asked})

    def slower(what, key, bound):
        if crane.get(key, {}).get('ratio') is not None:
            target(f'crane: {what} / ours', crane[key]['ratio'], bound, at_least=True)

    slower('constraintDynamics, forward, native', ('forward', 'native', 'Pinocchio constraintDynamics'), 8)
    slower('mj_forward, forward, native', ('forward', 'native', 'MuJoCo mj_forward'), 6)
    slower('closure + RNEA, inverse, native', ('inverse', 'native', 'Pinocchio closure + RNEA'), 2.5)
    for task in ('forward', 'inverse'):
        if (task, 'native', OURS) in crane:
            error = crane[task, 'native', OURS]['error']
            target(f'crane: our {task} dynamics, best us', crane[task, 'native', OURS]['best_us'],
                   1.1 * TRIANGLE_US[task], form='{:.3f}')
            target(f'crane: error of our {task} dynamics', error, 1e-12, form='{:.1e}')
    peer = 'Pinocchio constraintDynamics'
    if crane.get(('forward', 'python', peer), {}).get('ratio') is not None:
        target('crane: ours / constraintDynamics, forward, Python',
               1.0 / crane['forward', 'python', peer]['ratio'], 0.35)
    for r in results.get('batch', ()):
        target(f'{r["machine"]}: batch / native, {r["task"]}', r['ratio'], 0.6)
    for task in ('forward', 'inverse'):
        for loops in sorted(loops for which, loops in cost if which == task and loops >= 128):
            target(f'{task}: cost per module, n = {loops} / n = 8', cost[task, loops]['against_8'], 1.15)
        if (task, 128) in cost:
            per_module = cost[task, 128]['us_per_module']
            target(f'{task}: us per loop module, n = 128', per_module, 0.2, form='{:.3f}')
    _general_targets(results, target)
    _hydraulic_targets(results.get('hydraulics'), target)
    for (group, state), r in startup.items():
        seconds = {('closed form', 'cold'): 40.0, ('closed form', 'warm'): 2.0}.get((group, state))
        if seconds:
            target(f'import, load, first calls, {group}, {state} cache [s]', r['total_s'], seconds)
    cold = [r['total_s'] for (_, state), r in startup.items() if state == 'cold']
    if cold:
        target('cold compile of everything, four processes [s]', sum(cold), 120.0)
    if 'closure' in results:
        target('closure residual over the stroke [m]', results['closure']['largest_m'], 1e-14, form='{:.1e}')
    return records


def _general_targets(results, target):
    """Machines with any loops: faster than constraintDynamics, cost linear in the modules; the derivatives."""
    ratios = {(r['machine'], r['mode'], r['engine']): r['ratio'] for r in results.get('general', ())
              if r['task'] == 'forward' and r['ratio'] is not None}
    for (machine, mode, engine), bound in GENERAL_BOUNDS.items():
        if {(machine, mode, engine), (machine, mode, DYNAMICS)} <= ratios.keys():
            target(f'{machine}: {engine} / constraintDynamics, forward, {mode}',
                   ratios[machine, mode, engine] / ratios[machine, mode, DYNAMICS], bound)
    errors = [r['error'] for r in results.get('general', ()) if r['engine'] == OURS]
    if errors:
        target('machines with loops of any kind: largest error of ours', max(errors), 1e-10, form='{:.1e}')
    for r in results.get('modules', ()):
        if r['engine'] == OURS and r['modules'] > r['against']:
            target(f'{r["kind"]}, {r["task"]}: cost per module, n = {r["modules"]} / n = {r["against"]}',
                   r['growth'], 1.15)
    for r in results.get('jacobians', ()):
        if r['engine'] == OURS and r['mode'] == 'native':
            if r['machine'] == 'crane':
                target('crane: derivatives of forward dynamics, best us', r['best_us'], 3.0)
            target(f'{r["machine"]}: error of our derivatives against differences', r['error'], 1e-8, form='{:.1e}')


def _hydraulic_targets(record, target):
    """A step of the crane on valves in real time with room to spare, as accurate as it must be."""
    if record is None:
        return
    steps = {r['substeps']: r['best_us'] for r in record['cost'] if r['mode'] == 'native'}
    for substeps, bound in ((2, 15.0), (4, 25.0)):
        target(f'crane on valves: step of 1 ms, {substeps} sub-steps, best us', steps[substeps], bound)
    ours = record['cycle'][0]
    target('crane on valves: offline, times real time', ours['faster'], 50.0, at_least=True, form='{:.0f}')
    target('crane on valves: strokes against Radau [mm]', ours['strokes_mm'], 0.02, form='{:.1e}')
    target('crane on valves: pressures against Radau [% of supply]', ours['pressures_percent'], 0.1, form='{:.1e}')
    for peer in record['cycle'][2:]:
        target(f'{peer["method"]}, as accurate / ours, time', peer['s'] / ours['s'], 1, at_least=True, form='{:.1f}')


def targets_table(records):
    return _text(('target', 'measured', 'asked', ''), [
        (r['what'], r['text'], r['asked'], 'met' if r['met'] else 'NOT MET') for r in records])


def _us(value):
    return '' if value is None else f'{value:.3g}' if value >= 1 else f'{value:.3f}'


def _ratio(record):
    return '' if record['ratio'] is None else f'{record["ratio"]:.2f}'


def _error(record):
    return '' if record['error'] is None else f'{record["error"]:.0e}'


def _text(header, lines):
    """Columns of equal width; words to the left, numbers to the right."""
    cells = [[str(cell) for cell in line] for line in (header, *lines)]
    widths = [max(len(line[k]) for line in cells) for k in range(len(header))]
    words = [all(not line[k][:1].isdigit() for line in cells[1:]) for k in range(len(header))]
    return '\n'.join(
        '  '.join(cell.ljust(width) if word else cell.rjust(width)
                  for cell, width, word in zip(line, widths, words)).rstrip()
        for line in cells)
