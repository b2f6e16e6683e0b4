"""A validation as text, JSON and CSV."""

import csv
import json
import math
from dataclasses import fields
from pathlib import Path

from ..metrics.metrics import ACCELERATION, EFFORT, FRICTIONLESS, KIND_NAMES, Metrics, plain
from ..metrics.prediction import REGIME_NAMES
from ..metrics.tracking import units
from ..signals.quality import NOTE
from .when import when_wrong

VERSION = 2                 # of the layout of validation.json
FORCE = {'m': 'N', 'rad': 'N m'}
COLUMNS = tuple(field.name for field in fields(Metrics))
SHARE = 100.0               # %


def metrics_table(found):
    """Rows of text, the header first: efforts of every actuator."""
    shown = [figure for figure in found.metrics.figure.values() if figure.column]
    yield ('actuator', 'unit', 'RMSE', *(figure.column for figure in shown), 'without friction [%]',
           'acceleration [%]')
    coordinates = found.metrics.coordinates
    judged = {(check.about, check.figure): check.value for check in found.verdict.checks}
    for axis, (name, unit) in enumerate(zip(found.metrics.actuators, actuator_units(found))):
        effort = found.metrics.effort(axis)
        if not effort.count:
            text = 'near an end stop' if found.metrics.known(axis) else 'not measured'
            yield name, FORCE[unit], text, *('',) * (len(shown) + 2)
            continue
        acceleration = (found.metrics.metrics(ACCELERATION, coordinates.index(name)).nrmse if name in coordinates
                        else math.nan)
        yield (name, FORCE[unit], f'{effort.rmse:.4g}',
               *(figure.cell(effort, judged.get((name, figure.name))) for figure in shown),
               f'{SHARE * found.metrics.metrics(FRICTIONLESS, axis).nrmse:.3g}', f'{SHARE * acceleration:.3g}')


def regimes_table(found):
    """Rows of text, the header first: RMSE of efforts in every regime, and the share of time in it."""
    yield 'actuator', 'unit', *(f'{name.replace("_", " ")}' for name in REGIME_NAMES)
    for axis, name, parts in found.metrics.table(EFFORT):
        whole = found.metrics.known(axis)
        if whole:
            yield name, FORCE[actuator_units(found)[axis]], *(
                f'{parts[regime].rmse:.4g} ({SHARE * parts[regime].count / whole:.0f} %)' if parts[regime].count else ''
                for regime in REGIME_NAMES)


def simulation_table(found):
    """Rows of text, the header first: errors of simulations from recorded states."""
    yield 'simulated [s]', 'from', *found.metrics.coordinates
    for error in found.simulation:
        yield (f'{error.seconds:g}', f'{error.starts} states', *(
            f'{1e3 * one:.3g} m{unit}'
            for one, unit in zip(error.position, actuator_units(found, found.metrics.coordinates))))


def checks_table(found):
    """Rows of text, the header first: what was judged."""
    yield 'what', 'verdict'
    for check in found.verdict.checks:
        yield check.text, 'pass' if check.passed else 'FAIL'


def facts(found):
    """{label: text} of the conditions."""
    channels = found.channels
    hydraulics = found.predictor.hydraulics
    shown = {'bag': f'{found.bag}, {found.duration:.1f} s', 'model': found.manipulator.name,
             'friction': 'of the hydraulics' if hydraulics else 'of the URDF; no hydraulics are used',
             'states': f'{", ".join(channels.states)} ({1.0 / channels.period:.4g} Hz), joints '
                       f'{", ".join(channels.joints)}',
             'efforts': ', '.join(filter(None, (channels.efforts, channels.telemetry, *channels.ports.values())))
                        or 'none',
             'filter': found.predictor.filter.text(), 'tolerances': found.settings.where}
    for topic, delay in found.delays.items():
        shown[f'delay of {topic}'] = delay.text
    if found.settings.delays:
        shown['delays of the settings, taken off'] = ', '.join(f'{topic} {1e3 * delay:g} ms'
                                              for topic, delay in found.settings.delays.items())
    closure = found.metrics.figure['closure'].as_dict()
    if closure['rows'] and redundant(found):
        shown['closure of redundant joints'] = (f'{1e3 * closure["rms"]:.3g} mm rms, '
                                                f'{1e3 * closure["largest"]:.3g} mm at most')
    balance = found.metrics.figure['energy'].balance()
    if balance.spans:
        shown['energy'] = (f'{sum(balance.actuators):.4g} J of work = {sum(balance.friction):.4g} J of friction + '
                           f'{balance.mechanical:.4g} J kept + {balance.unexplained:.3g} J unexplained')
    return shown


def redundant(found):
    """Whether more joints are measured than are needed, so that they may disagree."""
    return len(found.channels.joints) > found.manipulator.dof


def summary(found):
    """The verdict and the tables as lines of text."""
    from .page import as_text

    warnings = [f'{one.severity}: {one.about}: {one.text}' for one in found.quality.findings() if one.severity != NOTE]
    lines = [found.verdict.text, *warnings, *(f'partial input: {text}' for text in found.verdict.partial),
             *(f'left out: {text}' for text in found.verdict.left_out), '',
             as_text(metrics_table(found)), '', 'RMSE by regime', as_text(regimes_table(found))]
    if found.simulation:
        lines += ['', 'errors of simulations under measured efforts', as_text(simulation_table(found))]
    wrong = when_wrong(found)
    if wrong:
        lines += ['', 'when it was wrong', *(f'  {one.text}' for one in wrong)]
    lines += ['', 'likely causes of what is not explained, none of them a fact']
    lines += [line for number, cause in enumerate(found.causes, 1)
              for line in (f'  {number}. {cause.text}', f'     next: {cause.next}')] or [f'  {found.causes_text}']
    lines += ['', *(f'{label}: {text}' for label, text in facts(found).items())]
    notes = [one for one in found.quality.findings() if one.severity == NOTE]
    return '\n'.join(lines + [f'{one.severity}: {one.about}: {one.text}' for one in notes])


def document(found):
    """All of it as what JSON can hold, SI units; what is not known is None."""
    metrics, verdict = found.metrics, found.verdict
    actuators = {}
    for axis, name in enumerate(metrics.actuators):
        actuators[name] = {
            'unit': FORCE[actuator_units(found)[axis]],
            **{KIND_NAMES[kind]: _parts(metrics, kind, axis) for kind in (EFFORT, FRICTIONLESS)},
            'sensor_noise': metrics.noise(axis),
            'nrmse_interval': metrics.figure['nrmse'].interval(axis)[1:],
            'delay': metrics.figure['delay'].lag(axis)._asdict()}
    return plain({
        'version': VERSION, 'verdict': verdict.verdict, 'text': verdict.text, 'but': verdict.but,
        'exit_code': verdict.exit_code, 'reasons': verdict.reasons, 'partial': verdict.partial,
        'left_out': verdict.left_out,
        'when': [one._asdict() for one in when_wrong(found)],
        'checks': [check.as_dict() for check in verdict.checks], 'bag': str(found.bag),
        'machine': found.manipulator.name, 'duration': found.duration, 'usable': metrics.rows * found.channels.period,
        'topics': {'states': found.channels.states, 'efforts': found.channels.efforts,
                   'telemetry': found.channels.telemetry,
                   'ports': {f'{name}.{port}': topic for (name, port), topic in found.channels.ports.items()},
                   'commands': found.channels.commands, 'joints': found.channels.joints},
        'filter': {'text': found.predictor.filter.text(),
                   'cutoff': [found.predictor.filter.cutoff(order) for order in range(3)]},
        'actuators': actuators,
        'coordinates': {name: {'acceleration': _parts(metrics, ACCELERATION, channel)}
                        for channel, name in enumerate(metrics.coordinates)},
        **{name: figures for name, figure in metrics.figure.items() if (figures := figure.as_dict())},
        'simulation': [error._asdict() for error in found.simulation],
        'delays': {topic: {**delay.as_dict(), 'text': delay.text} for topic, delay in found.delays.items()},
        'causes': [cause.as_dict() for cause in found.causes], 'causes_text': found.causes_text,
        'quality': found.quality.as_dict()})


def write_tables(folder, found):
    """Write validation.json, metrics.csv, seconds.csv and spectrum.csv into a folder."""
    folder, metrics = Path(folder), found.metrics
    text = json.dumps(document(found), indent=1, allow_nan=False)
    (folder / 'validation.json').write_text(text + '\n', encoding='utf-8')
    _write(folder / 'metrics.csv', ('quantity', 'name', 'regime', *COLUMNS), (
        (KIND_NAMES[kind], name, regime, *one.as_dict().values())
        for kind in (EFFORT, FRICTIONLESS, ACCELERATION) for _, name, parts in metrics.table(kind)
        for regime, one in parts.items() if one.count))
    columns = [metrics.per_bin(EFFORT, axis) for axis in range(len(metrics.actuators))]
    closure = metrics.figure['closure'].largest()
    header = ('t', *(f'{name}.{what}' for name in metrics.actuators for what in ('rmse', 'bias', 'samples')), 'closure')
    _write(folder / 'seconds.csv', header, (
        (f'{t:.6g}', *(value for column in columns for value in column[row].tolist()), closure[row])
        for row, t in enumerate(metrics.seconds) if any(column[row, 2] for column in columns)))
    frequencies, density = metrics.spectrum.density()
    _write(folder / 'spectrum.csv', ('frequency', *metrics.actuators), (
        (frequency, *row) for frequency, row in zip(frequencies.tolist(), density.tolist())))


def _write(path, header, rows):
    with path.open('w', newline='', encoding='utf-8') as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(['' if value is None or value != value else f'{value:.9g}' if isinstance(value, float)
                          else value for value in row] for row in rows)


def _parts(metrics, kind, channel):
    """{regime or 'all': figures} of what has samples."""
    parts = {'all': metrics.metrics(kind, channel)}
    parts.update({name: metrics.metrics(kind, channel, regime) for regime, name in enumerate(REGIME_NAMES)})
    return {name: one.as_dict() for name, one in parts.items() if one.count}


def actuator_units(found, names=None):
    """['m' or 'rad'] of actuators."""
    return list(units(found.manipulator, found.metrics.actuators if names is None else names).values())
