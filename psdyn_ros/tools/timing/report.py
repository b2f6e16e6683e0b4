"""What `psdyn latency` found: table, verdict, picture, and all of it as JSON and Markdown."""

from typing import NamedTuple

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from scipy.stats import binom

from ...nodes.controller.cycle_statistics import EDGES
from ...validation.report.figure_style import BLACK, BLUE, VERMILLION, panels
from ...validation.report.page import as_text

NULL, ECHO, CONTROLLER = 'null', 'echo', 'controller'
WORDS = {NULL: 'sleep only', ECHO: 'echo', CONTROLLER: 'controller'}
COLORS = {NULL: BLACK, ECHO: BLUE, CONTROLLER: VERMILLION}
MAX_EXECUTION_RATIO = {50.0: 3.0, 99.0: 2.0}    # percentile: execution time of the controller over that of the echo
SIGNIFICANT = 0.05          # chance of as many stalls as the controller had, below which they are its own
SHOWN = (('lateness', 'wake-up lateness'), ('execution', 'execution time'), ('age', 'age of the input at publication'))
HEADER = ('loop', 'rate [Hz]', 'trigger', 'cycles', 'late p50', 'p99', 'p99.9', 'max', 'execution p50', 'p99', 'p99.9',
          'max', 'age p50', 'p99', 'p99.9', 'max', 'missed slots', 'longest run')
PAGE = (
    '# How punctual and how quick a control cycle is', '',
    'Written by `psdyn latency --report`; [realtime.md](../how-to/realtime.md) says how it is measured and what '
    'helps. A loop that only sleeps, one that only echoes messages and the controller of the crane on its valves take '
    'turns, each in a process of its own, over DDS, in the same minutes. With the trigger `timer` the age of the input '
    'depends on the phase between states and slots.', '')
PARTS = ('execution', 'computation', 'publishing')


class Check(NamedTuple):
    """One line of the verdict."""

    what: str
    measured: str
    required: str
    passed: bool


def table(results):
    """Rows of text, the first one the header; durations in µs."""
    yield HEADER
    for (kind, rate, trigger), result in results.items():
        records = result.records
        late, execution, age = (records.histograms[what].summary() for what in ('lateness', 'execution', 'age'))
        slots = records.cycles + records.missed
        yield (WORDS[kind], f'{rate:g}', trigger, f'{records.cycles}', *_us(late, (0, 1, 2, 4)),
               *_us(execution, (0, 1, 2, 4)), *_us(age, (0, 1, 2, 4)),
               f'{records.missed} of {slots} in {records.stalls}', f'{records.longest_missed}')


def parts(results):
    """Rows of text, the first one the header: what the execution time consists of, in µs."""
    yield ('loop', 'rate [Hz]', 'trigger', *(f'{part} {label}' for part in PARTS for label in ('p50', 'p99', 'p99.9')))
    for (kind, rate, trigger), result in results.items():
        if kind != NULL:
            summaries = (result.records.histograms[part].summary() for part in PARTS)
            yield (WORDS[kind], f'{rate:g}', trigger, *(text for one in summaries for text in _us(one, (0, 1, 2))))


def _us(summary, which):
    return (f'{1e6 * summary[k]:.0f}' if summary[4] else '' for k in which)


def verdict(results):
    """Every `Check` that the results allow."""
    for (kind, rate, trigger), result in results.items():
        if kind != CONTROLLER:
            continue
        where = f' at {rate:g} Hz ({trigger})'
        echo = results.get((ECHO, rate, trigger))
        if echo is None:
            continue
        for percentile, most in MAX_EXECUTION_RATIO.items():
            ours, theirs = (one.records.histograms['execution'].percentiles(percentile)[0] for one in (result, echo))
            yield Check(f'execution p{percentile:g}{where}', f'{1e6 * ours:.0f} µs',
                        f'at most {most:g} times that of the echo loop, {1e6 * theirs:.0f} µs',
                        bool(0.0 < ours <= most * theirs))
        yield missed_slots(result.records, echo.records, where)


def missed_slots(ours, echo, where=''):
    """The `Check` of missed slots, each an object with `cycles`, `missed` and `stalls`.

    They come in stalls of the machine, so that stalls are counted to tell chance from cause.
    """
    slots = [one.cycles + one.missed for one in (ours, echo)]
    rates = [one.missed / max(count, 1) for one, count in zip((ours, echo), slots)]
    stalls = ours.stalls + echo.stalls
    chance = float(binom.sf(ours.stalls - 1, stalls, slots[0] / max(sum(slots), 1))) if stalls else 1.0
    return Check(f'missed slots{where}', f'{100.0 * rates[0]:.3f} % in {ours.stalls} stalls',
                 f'not above the echo loop: {100.0 * rates[1]:.3f} % in {echo.stalls} stalls (as many or more by '
                 f'chance: {chance:.2f})', rates[0] <= rates[1] or chance >= SIGNIFICANT)


def wording(results):
    """The sentences about missed slots, for the controller."""
    for (kind, rate, trigger), result in results.items():
        if kind == CONTROLLER:
            records = result.records
            yield (f'Soft real time: meets T = {1e3 / rate:g} ms ({trigger}) with {records.missed} missed slots in '
                   f'{records.cycles + records.missed} under these conditions.')


def picture(results):
    """Figure: share of cycles beyond a duration, one row for each rate and trigger, one column for each duration."""
    rows = list(dict.fromkeys(key[1:] for key in results))
    figure, grid = panels(11.0, 1.0 + 2.6 * len(rows), len(rows), len(SHOWN), sharex='col', sharey=True)
    for axes_of_row, (rate, trigger) in zip(grid, rows):
        for axes, (quantity, title) in zip(axes_of_row, SHOWN):
            for kind in WORDS:
                result = results.get((kind, rate, trigger))
                if result is not None and not (kind == NULL and quantity == 'execution'):
                    _beyond(axes, result.records.histograms[quantity], kind)
            axes.axvline(1e6 / rate, color='#888888', linewidth=0.8, linestyle=':')
            axes.set_title(f'{title}, {rate:g} Hz, {trigger}', fontsize='small')
            axes.set_xscale('log')
            axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f'{value:g}'))
            axes.xaxis.set_minor_formatter(NullFormatter())
            if len(axes.get_lines()) == 1:
                axes.text(0.5, 0.5, 'a message begins the cycle:\nit is never late', ha='center', va='center',
                          transform=axes.transAxes, color='#666666')
        axes_of_row[0].set_ylabel('share of slots beyond')
    for axes in grid[-1]:
        axes.set_xlabel('µs (dotted: the period)')
    handles = {handle.get_label(): handle for axes in grid.flat for handle in axes.get_lines()
               if handle.get_label() in WORDS.values()}
    figure.legend(handles.values(), handles.keys(), loc='outside upper center', ncols=len(handles), frameon=False)
    return figure


def _beyond(axes, histogram, kind):
    """Draw the share of durations beyond each, down to one of them."""
    count = histogram.count
    if not count:
        return
    filled = np.flatnonzero(histogram.counts)
    beyond = (count - np.cumsum(histogram.counts)[filled]) / count
    edges = np.maximum(EDGES[1:][filled], 1000) * 1e-3
    axes.loglog(np.append(edges[0], edges), np.append(1.0, np.maximum(beyond, 0.5 / count)), color=COLORS[kind],
                linewidth=1.4, drawstyle='steps-post', label=WORDS[kind])


def as_json(results, facts, checks):
    """All of it as plain numbers, lists and texts."""
    return {'conditions': facts,
            'loops': [{'kind': kind, 'rate': rate, 'trigger': trigger, 'sent': result.sent,
                       'received': result.received, 'realtime': list(result.report),
                       'records': result.records.as_dict(), 'source': result.source.as_dict()}
                      for (kind, rate, trigger), result in results.items()],
            'verdict': [check._asdict() for check in checks]}


def as_markdown(results, facts, checks, picture_path=''):
    """The page about a run."""
    header, *rows = table(results)
    header_of_parts, *rows_of_parts = parts(results)
    lines = [*PAGE, '## Conditions', '', *_rows(('what', 'measured with'), facts.items()), '', '## Measured', '',
             'Durations in µs; missed slots as slots in stalls.', '', *_rows(header, rows), '',
             *_rows(header_of_parts, rows_of_parts), '', '## Verdict', '',
             *_rows(('what', 'measured', 'required', ''),
                    ((c.what, c.measured, c.required, 'pass' if c.passed else 'FAIL') for c in checks)), '',
             *wording(results), '']
    if picture_path:
        lines += [f'![Share of slots beyond a duration]({picture_path})', '']
    return '\n'.join(lines)


def _rows(header, rows):
    yield f'| {" | ".join(header)} |'
    yield '|' + '---|' * len(header)
    for row in rows:
        yield f'| {" | ".join(row)} |'


def as_terminal(results, facts, checks):
    """The same as text."""
    width = max(map(len, facts))
    return '\n'.join([
        *(f'{what:<{width}}  {text}' for what, text in facts.items()), '',
        'Durations in µs.', as_text(table(results)), '', as_text(parts(results)), '',
        as_text([(c.what, c.measured, c.required, 'pass' if c.passed else 'FAIL') for c in checks]) if checks else '',
        '', *wording(results)])
