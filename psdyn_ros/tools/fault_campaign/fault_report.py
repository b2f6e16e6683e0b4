"""docs/reference/fault_report.md and its picture, from what a campaign measured."""

import math
import re
from collections import Counter
from pathlib import Path

from ...control.safety.fault_table import CONDITIONS
from ...model.errors import ModelError
from ...validation.report.figure_style import panel, panels
from .bench import JITTER, MOTION_LEVELS, PLANTS, PROBATION, RATE, RATES, TTL
from .in_process import CONFIDENCE
from .lies import cases

SLIGHTLY = 1.1              # times the allowed speed
PICTURE, MOTION_PICTURE = 'faults.png', 'fault_motion.png'
VERDICT, MOTION_VERDICT = r'\* \*\*(?:PASSED|FAILED)\.\*\* ', 'Motion after a fault'
ABOUT = '''# Fault campaign

Written by `python3 -m psdyn_ros.tools.fault_campaign.campaign` from the run that is described at the end; `make
campaign` repeats it. In process, the conditions of the fault table (`psdyn_ros/control/safety/fault_table.py`) that
the table lists were brought about at the inputs in every state where they can be, with random phases, places and sizes;
none is reported by the campaign itself. An independent judge
(`psdyn_ros/tools/fault_campaign/judge.py`, which shares nothing with the output gate) looks at every output: there,
finite, in range, in rate, of its cycle, the declared safe output where that is due, no motion that nobody released,
SAFE left by a reset only, and a machine that gets no faster once it is to stop.
'''
IN_PROCESS = '''## In process

The control core on the plant of the HIAB XS 031, at force level and on valves, {rate:g} Hz, in a time of their own
with {jitter:.0f} % of jitter; the timeouts are those that are shipped, the probation is {probation:g} s so that
trials are short. *Worst* is the longest reaction, in control cycles from the first effect at the input to the first
output that conforms (0: the same cycle); nothing is subtracted. Then follow the stop, a reset that is refused while
the cause is present, a reset, enabling, and a new reference; whatever goes otherwise there is *wrong*. Of N good
trials the rate of bad ones is below {confidence:g}/N with 95 % confidence.

*Fastest* is the largest share of its rated speed that the machine itself had when it was not to move any more.
Where sensors or the law are spoilt it moves by the wrong values until that is detected; the speed is listed there for
information, everywhere else a machine that gets faster is unsafe.
'''
MOTION = '''## The motion after a fault

After each fault the true machine is watched on two plants: that of the package, and the second one of
`tools/studies/second_plant/`, whose equations, integrator, friction, valves and noisy sensors are its own; at 100, 200
and 500 Hz, at force level without and with the friction of seals and on valves, in every state (in STANDBY and SAFE an
operator then resets, enables and gives a reference). Besides the faults of the table sensors lie and laws fail
(`lies.py`), once or until the end; what the controller makes of it counts for nothing. A trial is *missed* where

* an axis goes faster than 1.1 times the largest of its speed at the fault, of what it was asked for by then, and of its
  speed by then in the same trial without a fault (of a stream that stops: while it goes on); 20 mm/s or mrad/s are
  allowed anyway,
* a valve is open by more than 95 % against its reference, or without one, for more than 20 ms in all,
* the machine still goes at 10 mm/s or mrad/s when the declared time of a stop is over, or
* it goes farther in a stop than v^2 / (2 a) plus 20 mm or mrad, with the speed at its beginning and the declared
  deceleration, or anything is raised.

*Distance* is that of the stop, without one the largest from the reference. This part alone is written by
`python3 -m psdyn_ros.tools.fault_campaign.motion_trials --output docs/reference/fault_report.md`, with `--workers N` in
parallel, with `--short` for one state of each fault, and with `--seconds S` for as many of all as there is time for.
With `--sound MINUTES` it counts the stops of a sound machine instead, with the exact and with wrong models of its law.
'''
NODE_CONDITIONS = '''After a reference or a payload that is refused the outputs are compared, bit by bit, with a run
without it; descriptions of machines are judged in ms. What only a node detects is not tried here: other publishers,
parameters, another description and floods are attacks over the wire, states that a node cannot use are messages to a
real node (`test/nodes/controller/test_controller_node.py`).
'''
KILLS = '''## Killed and stopped over the wire

Simulator and controllers are processes over DDS; the hydraulic plant under valve commands gives its safe output
when commands are older than ttl = {ttl:g} s. A controller that moves the machine gets a signal at a random phase;
`kill -9` ends it, SIGSTOP freezes it, and SIGCONT lets it go on: after a second or more, when everybody takes it for
dead and has to find it again, or after half a second, when what it says is heard at once. One in fifteen is frozen with
a command computed and not yet published, which is late when it goes on. The time is that from the signal, on the
clock of the system, to the stamp of the first telemetry in which every cylinder is at its safe output; the last command
may have come up to a period before the signal, and stamps have the grain of a period. 5 mm or mrad away from where the
machine stood count as a motion: stood, as soon as it goes less than 0.2 mm in 0.2 s, since behind shut valves pressures
even out for a second or two; before short stops end there is no time for that, and 10 count.
'''
LEASE = '''A dead publisher counts as one until the middleware forgets it, by default of Fast DDS after 20 s, and as
long as it counts a new controller is refused and the receiver obeys nobody. The processes here run with a profile of
`config/fastdds_*.xml` that makes it 1 s; each controller has a node name of its own, so that the next one waits,
unconfigured and without a publisher, while one is at work.

In shared memory, the usual transport of Fast DDS on one computer, SIGSTOP can hit a process while it holds a lock; then
everybody else, the receiver too, was seen to stall for one to two seconds (`--transport shared_memory` shows it, in
about one of five stops). What drives an actuator must not share memory with a controller: the nodes of this package do
not, see "Who can reach the graph" in [security.md](../how-to/security.md).
'''
ATTACKS = '''*Counted* is the condition of the fault table that the controller counted under the attack, by its
diagnostics; an attack that is not counted so has a problem. Nothing of another message type is delivered, or counted.

Slots of 2 ms that the controller missed; of floods also the share of all slots that it missed in the two seconds before
and under the flood, and the same of a bare echo loop that was flooded right after, beside a controller that went on: it
answers each state when it comes, as the controller does, with commands that somebody receives, and takes pressures and
each message of the flood as it comes, without a look at them. What a flood costs is the difference; a controller that
misses more than the echo, by more than chance, has a problem.
'''
NULL = '''A process that only sleeps and wakes up, each 2 ms, while the half over the wire ran: what this computer is
late by itself.
'''
LIMITS = '''## What this does not show

One machine, one computer, simulated hydraulics; a fault that nobody thought of; two faults at once, but for those that
follow from each other; anything below DDS. It is no proof of a safety function, and there is none. In process the plant
gives its safe output when commands are older than {ttl:g} s.
'''


def write(path, summaries, kills, attacks, facts, nulls, ttl, motions=()):
    """Write the page, and images/faults.png beside it; returns its path.

    summaries  [`Summary`] in process; empty: not run
    kills      [`Kill`]; attacks: [`Attack`]; empty: not run
    facts      {what: text} about the computer and the run
    nulls      {what: text} of the null loop beside the wire half
    ttl        s, of commands over the wire
    motions    [`MotionTrial`]; empty: not run
    """
    path = Path(path)
    folder = path.parent
    parts = [ABOUT, *verdicts(summaries, kills, attacks, motions), '']
    (folder / 'images').mkdir(parents=True, exist_ok=True)
    if summaries:
        draw(summaries, folder / 'images' / PICTURE)
        parts += [IN_PROCESS.format(rate=RATE, jitter=100 * JITTER, probation=PROBATION, confidence=CONFIDENCE),
                  f'![reactions against their bounds](images/{PICTURE})\n', *table(summaries), '', NODE_CONDITIONS]
        parts += bad_trials(summaries)
    if motions:
        parts += _motion_part(motions, folder)
    if kills:
        parts += [*_kills(kills, ttl), '']
    if attacks:
        parts += ['## Attacks over the wire\n', *_attacks(attacks), '']
    if nulls:
        parts += ['## The null loop\n', NULL, *_pairs(nulls), '']
    parts += ['## Conditions\n', *_pairs(facts), '', LIMITS.format(ttl=TTL)]
    path.write_text('\n'.join(parts))
    return path


def write_motions(path, motions, run=''):
    """Replace the part of motions in a page that `write` wrote, its verdict and its picture; returns its path.

    run  of the motions: when, how long, and how much

    Raises ModelError where the page has no such part and no part before which it stands.
    """
    path = Path(path)
    text = path.read_text()
    heading = MOTION.splitlines()[0]
    begin = text.find(heading)
    end = text.find('\n## ', begin + 1) + 1 if begin >= 0 else text.find('\n## ') + 1
    if not end:
        raise ModelError(f"{path}: no part '{heading}', and none after it; expected a report of the campaign")
    (path.parent / 'images').mkdir(exist_ok=True)
    part = '\n'.join([*_motion_part(motions, path.parent, run), ''])
    text = text[:begin if begin >= 0 else end] + part + text[end:]
    head, rest = text[:text.find('\n## ')], text[text.find('\n## '):]
    head = re.sub(rf'^{VERDICT}{MOTION_VERDICT}.*\n', '', head, flags=re.MULTILINE).rstrip('\n')
    path.write_text('\n'.join([head, *verdicts((), (), (), motions), rest]))
    return path


def _motion_part(motions, folder, run=''):
    """Lines of the part of motions; its picture is drawn."""
    draw_motions(motions, folder / 'images' / MOTION_PICTURE)
    bad = sum(not one.good for one in motions)
    return [MOTION, f'{_word(not bad)} {len(motions)} trials, {bad} missed; seeds '
            f'{", ".join(map(str, sorted({one.seed for one in motions})))}{f"; {run}" if run else ""}.\n',
            *coverage(motions), '', *bounds_table(motions), '',
            f'![speeds, times and ways after faults](images/{MOTION_PICTURE})\n',
            *motion_table(motions), '', *missed_motions(motions)]


def coverage(trials):
    """Lines of a table: of how many faults in their states there are trials, and how many missed, by where they ran."""
    yield '| plant | level | of | ' + ' | '.join(f'{rate:g} Hz' for rate in RATES) + ' |'
    yield '|---|---|---|' + '---|' * len(RATES)
    for plant in PLANTS:
        for level in MOTION_LEVELS:
            cells = []
            for rate in RATES:
                some = [one for one in trials if (one.plant, one.level, one.rate) == (plant, level, rate)]
                tried = len({(one.group, one.name, one.state) for one in some})
                cells.append(f'{tried}, missed {sum(not one.good for one in some)} of {len(some)} trials' if some else
                             'not run')
            yield f'| {plant} | {level} | {len(list(cases(level)))} | ' + ' | '.join(cells) + ' |'


def bounds_table(trials):
    """Lines of a table: how many trials of a category missed which bound, and how far they were off the speed."""
    yield '| what fails | plant | trials | speed | full spool | rest | way | raised | by up to 10 % | by more |'
    yield '|---|---|---|---|---|---|---|---|---|---|'
    category = {one.group: 'fault of the table' if one.group[1:].isdigit() else one.group for one in trials}
    for name, plant in sorted({(category[one.group], one.plant) for one in trials}):
        some = [one for one in trials if (category[one.group], one.plant) == (name, plant)]
        kinds = [sum(any(text.startswith(kind) for text in one.missed) for one in some)
                 for kind in ('speed', 'full spool', 'at rest')]
        way = sum(any('v^2' in text for text in one.missed) for one in some)
        raised = sum(any(text.split()[0].endswith('Error:') or text.startswith('exception') for text in one.missed)
                     for one in some)
        fast = [one.speed / one.allowed for one in some if one.speed > one.allowed]
        slightly = sum(share <= SLIGHTLY for share in fast)
        yield (f'| {name} | {plant} | {len(some)} | {kinds[0]} | {kinds[1]} | {kinds[2]} | {way} | {raised} | '
               f'{slightly} | {len(fast) - slightly} |')


def motion_table(trials):
    """Lines of the table of motions: the worst of each group and plant."""
    yield '| fault | plant | trials | missed | worst speed, allowed | full spool | rest | beyond v^2/(2a) | distance |'
    yield '|---|---|---|---|---|---|---|---|---|'
    for group, plant in sorted({(one.group, one.plant) for one in trials}):
        some = [one for one in trials if (one.group, one.plant) == (group, plant)]
        worst = max(some, key=lambda one: one.speed - one.allowed)
        yield (f'| {group} | {plant} | {len(some)} | {sum(not one.good for one in some)} | '
               f'{1e3 * worst.speed:.0f}, {1e3 * worst.allowed:.0f} mm/s | '
               f'{1e3 * max(one.full for one in some):.0f} ms | '
               f'{max((one.rest or 0.0) for one in some):.2f} s | {1e3 * max(one.travel for one in some):.0f} mm | '
               f'{1e3 * max(one.distance for one in some):.0f} mm |')


def missed_motions(trials):
    """Lines about what was missed: the worst of each fault."""
    names = sorted({(one.group, one.name) for one in trials if not one.good})
    if not names:
        return
    yield '### What was missed\n'
    for name in names:
        some = [one for one in trials if (one.group, one.name) == name]
        missed = [one for one in some if not one.good]
        worst = max(missed, key=lambda one: one.speed - one.allowed)
        yield f'* {len(missed)} of {len(some)}: {worst.text()}'
    yield ''


def draw_motions(trials, path):
    """Picture of speeds, times and ways of all motions, by group, with their bounds."""
    groups = sorted({one.group for one in trials})[::-1]
    plants = sorted({one.plant for one in trials})
    shown = (('largest speed / allowed', lambda one: max(one.speed / one.allowed, 0.1), 1.0),
             ('full spool against\nthe reference [ms]', lambda one: 1e3 * one.full, 20.0),
             ('stop to rest [s]', lambda one: one.rest or 0.0, None),
             ('way of the stop beyond\n$v^2/(2a)$ [mm, mrad]', lambda one: 1e3 * one.travel, 20.0))
    figure, (columns,) = panels(11.0, 0.26 * len(groups) + 1.4, 1, len(shown), sharey=True)
    for axes, (title, value, bound) in zip(columns, shown):
        for k, plant in enumerate(plants):
            some = [one for one in trials if one.plant == plant]
            axes.plot([value(one) for one in some], [groups.index(one.group) + 0.17 - 0.34 * k for one in some], '|',
                      color=('#2f6f9f', '#c0702a')[k], markersize=5, alpha=0.5, label=f'plant: {plant}')
        if bound is not None:
            axes.axvline(bound, color='black', linewidth=1.0)
        axes.set_title(title, fontsize=9)
    columns[0].set_xscale('log')
    columns[0].set_yticks(range(len(groups)), groups, fontsize=8)
    columns[0].set_ylim(-0.7, len(groups) - 0.3)
    columns[1].legend(loc='center right', fontsize=7)     # where nothing is drawn
    figure.savefig(path)


def is_good(summaries, kills, attacks, motions=()):
    """Whether nothing was late, unsafe, wrong or missed."""
    return not (any(summary.bad for summary in summaries) or any(map(wrong_kill, kills))
                or any(attack.problem for attack in attacks) or any(not motion.good for motion in motions))


def wrong_kill(kill):
    """Whether the safe output did not come, something moved, or a process went on as if nothing had been."""
    return kill.seconds is None or bool(kill.moved_by) or kill.first in ('RUN', 'DEGRADED', 'HOLD')


def verdicts(summaries, kills, attacks, motions=()):
    """Yield a line for each part that ran: whether it passed, with the figures that matter."""
    if summaries:
        trials, unsafe = sum(one.trials for one in summaries), sum(one.unsafe for one in summaries)
        late, bad = sum(one.late for one in summaries), sum(len(one.bad) for one in summaries)
        faults = len({one.row.id for one in summaries})
        yield (f'* {_word(is_good(summaries, (), ()))} In process: {len(summaries)} of the {len(CONDITIONS)} '
               f'conditions of the fault table, {faults} faults, {trials} trials, {unsafe} unsafe outputs, {late} '
               f'reactions beyond their bound, {bad} trials bad in any way.')
    if kills:
        done = [kill.seconds for kill in kills if kill.seconds is not None]
        moved = sum(bool(kill.moved_by) for kill in kills)
        yield (f'* {_word(is_good((), kills, ()))} Over the wire: {len(kills)} processes killed or stopped, safe '
               f'output after {max(done, default=math.nan) * 1e3:.1f} ms at worst, {len(kills) - len(done)} without '
               f'it, {moved} that moved without a new reference.')
    if attacks:
        yield (f'* {_word(is_good((), (), attacks))} Over the wire: {len(attacks)} attacks, '
               f'{sum(bool(attack.problem) for attack in attacks)} with a problem.')
    for plant in sorted({one.plant for one in motions}):
        some = [one for one in motions if one.plant == plant]
        yield (f'* {_word(is_good((), (), (), some))} {MOTION_VERDICT}, plant {plant}: {len(some)} trials, '
               f'{sum(not one.good for one in some)} beyond a bound.')


def _word(good):
    return f'**{"PASSED" if good else "FAILED"}.**'


def table(summaries):
    """Lines of the table of conditions."""
    yield '| fault | condition | states | trials | worst | bound | unsafe | wrong | rate below | fastest |'
    yield '|---|---|---|---|---|---|---|---|---|---|'
    for one in summaries:
        unit = ' ms' if one.unit == 'ms' else ''
        worst = 'none' if one.worst is None else f'{one.worst}{unit}'
        states = 'load' if unit else ', '.join(one.states)
        rate = '' if one.rate_below is None or one.rate_below >= 1.0 else f'{100.0 * one.rate_below:.2g} %'
        fastest = f'{one.fastest:.2g}' if one.fastest >= 0.05 else ''
        yield (f'| {one.row.id} | {one.row.name} | {states} | {one.trials} | {worst} | {one.bound}{unit} | '
               f'{one.unsafe} | {len(one.bad)} | {rate} | {fastest} |')


def bad_trials(summaries):
    """Lines about what went wrong, the first of each condition."""
    found = [summary.bad[0] for summary in summaries if summary.bad]
    if not found:
        return []
    lines = ['### What went wrong\n']
    for trial in found:
        texts = [f'reaction {trial.reaction}, bound {trial.bound}'] * trial.late + list(trial.failures) + [
            f'{kind}: {text} ({count} times)' for kind, (count, text) in trial.findings.items()]
        lines.append(f'* {trial.condition}, {trial.way}, {trial.level}, {trial.state}, seed {trial.seed}: '
                     + '; '.join(texts))
    return [*lines, '']


def _kills(kills, ttl):
    yield KILLS.format(ttl=ttl)
    yield LEASE
    yield ('| signal | cycles | worst | median | without a safe output | moved without a reference | most moved | '
           'rate below |')
    yield '|---|---|---|---|---|---|---|---|'
    for way in dict.fromkeys(kill.way for kill in kills):
        some = [kill for kill in kills if kill.way == way]
        seconds = sorted(kill.seconds for kill in some if kill.seconds is not None)
        bad = sum(map(wrong_kill, some))
        yield (f'| {way} | {len(some)} | {seconds[-1] * 1e3:.1f} ms | {seconds[len(seconds) // 2] * 1e3:.1f} ms | '
               f'{len(some) - len(seconds)} | {sum(bool(kill.moved_by) for kill in some)} | '
               f'{max(kill.moved for kill in some) * 1e3:.2g} mm or mrad | '
               f'{"" if bad or len(some) <= CONFIDENCE else f"{100 * CONFIDENCE / len(some):.2g} %"} |' if seconds else
               f'| {way} | {len(some)} | none | none | {len(some)} | | | |')
    yield from _went_on([kill for kill in kills if kill.first is not None])


def _went_on(stopped):
    """What processes did that were frozen, by the way in which they were."""
    if not stopped:
        return
    yield '\n| signal | cycles | state of the first whole cycle | late commands refused by the receiver |'
    yield '|---|---|---|---|'
    for way in dict.fromkeys(kill.way for kill in stopped):
        some = [kill for kill in stopped if kill.way == way]
        first = Counter(kill.first or 'none was heard' for kill in some)
        yield (f'| {way} | {len(some)} | {", ".join(f"{name} {count}" for name, count in first.items())} | '
               f'{sum(kill.refused for kill in some)} |')


def _attacks(attacks):
    yield ATTACKS
    yield ('| fault | attack | counted | messages | states meanwhile | reaction | bound | slots missed | '
           'before, under | echo | problem |')
    yield '|---|---|---|---|---|---|---|---|---|---|---|'
    for one in attacks:
        shares = [f'{100.0 * share:.1f} %' for share in one.shares or ()]
        shares = f'{", ".join(shares[:2])} | {", ".join(shares[2:])}'
        reaction = '' if one.seconds is None else f'{one.seconds:.2f} s'
        bound = '' if one.bound is None else f'{one.bound:g} s'
        yield (f'| {one.row} | {one.what} | {one.counted} | {one.trials} | {", ".join(one.states)} | {reaction} | '
               f'{bound} | {one.missed} | {shares} | {one.problem or "none"} |')


def _pairs(facts):
    yield '| | |'
    yield '|---|---|'
    for what, text in facts.items():
        yield f'| {what} | {text} |'


def draw(summaries, path):
    """Picture of the worst reactions in cycles, as bars, and their bounds, as marks."""
    shown = [one for one in summaries if one.unit == 'cycles'][::-1]
    figure, axes = panel(8.0, 0.19 * len(shown) + 1.2, 'x')
    rows = range(len(shown))
    # one more, since 0 has no place on a logarithmic scale: a reaction in the same cycle is a bar up to 1
    worst = [math.nan if one.worst is None else one.worst + 1 for one in shown]
    axes.barh(rows, [value - 0.5 for value in worst], left=0.5, height=0.6,
              color=['#b03a2e' if one.bad else '#2f6f9f' for one in shown], label='worst reaction')
    axes.plot([one.bound + 1 for one in shown], rows, '|', color='black', markersize=9, markeredgewidth=1.8,
              label='bound')
    axes.set_xscale('log')
    ticks = [0, 1, 3, 10, 30, 100, 500]
    axes.set_xticks([tick + 1 for tick in ticks], [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks(rows, [f'{one.row.id} {one.row.name.replace("_", " ")}' for one in shown], fontsize=7)
    axes.set_ylim(-0.7, len(shown) - 0.3)
    axes.set_xlim(0.5, 800)
    axes.set_xlabel(f'control cycles ({RATE:g} Hz) until the output conforms; 0: in the same one')
    axes.legend(loc='lower right', fontsize=8)
    figure.savefig(path)
