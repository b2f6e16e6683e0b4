"""Does the model tell the truth about a recorded machine?  A bag and a URDF in, a verdict out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ..api.load import load
from ..api.manipulator import Manipulator
from ..model.locate import find_config
from ..model.parameters.hydraulics import Hydraulics, read_hydraulics
from .bags.folders import is_predicted
from .bags.predicted_bag import FOLDER, RATE, PredictedBag
from .bags.recording import BagError
from .bags.source import open_bag
from .diagnosis.diagnosis import Diagnosis
from .diagnosis.sensor_noise import SensorNoise
from .diagnosis.topic_delays import delay_of, topic_delays
from .metrics import UNDECIDED
from .metrics.metrics import MetricsAccumulator, capacities
from .metrics.prediction import Predictor
from .metrics.simulation_error import SimulationError
from .metrics.tolerances import Settings, read_settings
from .metrics.verdict import Verdict, judge
from .playback import write_playback
from .report.plot_samples import Traces
from .signals.blocks import OVERLAP, ROWS, blocks
from .signals.quality import Quality
from .signals.topics import Channels, find_topics

File = str | PathLike[str]


@dataclass(frozen=True)
class Validation:
    """What came of a validation.

    verdict     `Verdict`, with `exit_code` and `text`
    metrics     `MetricsAccumulator` with everything that was summed up
    simulation  tuple of `HorizonError`
    traces      `Traces` to be drawn
    quality     `Quality` of the data
    channels    which topics were used
    settings    what was tolerated
    predictor   the model, its filter and regimes
    bag         path
    duration    s that were recorded
    delays      {topic: `TopicDelay`} that were looked for, before the pass
    causes      tuple of `Cause`, the likeliest first
    causes_text what they come to in words, or why there are none
    """

    verdict: Verdict
    metrics: MetricsAccumulator
    simulation: tuple
    traces: Traces
    quality: Quality
    channels: Channels
    settings: Settings
    predictor: Predictor
    bag: Path
    duration: float
    delays: dict = field(default_factory=dict)
    causes: tuple = ()
    causes_text: str = ''

    def __repr__(self) -> str:
        return f'Validation of {self.bag}, {self.duration:.1f} s: {self.verdict.text}'

    @property
    def manipulator(self) -> Manipulator:
        """The model."""
        return self.predictor.manipulator


def validate(bag: File, urdf: File | Manipulator, *, hydraulics: File | Hydraulics | None = None,
             config: File | Settings | None = None, output: File | None = None,
             topics: Mapping[str, Any] | None = None, initial: Mapping[str, float] | None = None, rows: int = ROWS,
             quiet: bool = True, align: bool = True, predicted_rate: float | None = RATE,
             hydraulics_optional: bool | None = None) -> Validation:
    """Hold a recording against a model; returns a `Validation`.

    bag         folder or file, MCAP or SQLite
    urdf        file, name of a machine of the package, or a `Manipulator`
    hydraulics  YAML file or `Hydraulics`; '' for none, None for that of the machine of the package, where it has one
                and the bag has chamber pressures
    config      `Settings`, YAML file or text as `tolerances.read_settings` takes them, or None for the defaults
    output      folder for report.html, playback.html of up to 5 minutes, pictures, validation.json, metrics.csv,
                seconds.csv, spectrum.csv, the bag `predicted` and plotjuggler_layout.xml; it may exist, and these files
                are replaced; None writes nothing
    topics      {'states', 'efforts', 'pressures', 'commands', 'reference': topic}, beside those of the config
    initial     {joint: position}, see `load`
    rows, quiet  of a block; without a progress bar
    align       whether delays between topics are looked for and taken off, unless the config says that they are not
    hydraulics_optional  whether `hydraulics` count only where the bag has chamber pressures; None: where they are None

    Reads the bag once, beside the beginning of each topic and as much of it as delays need, with memory that does not
    grow with it. Raises BagError where it is unreadable or of another machine, ModelError where files do not fit.
    """
    hydraulics_optional = hydraulics is None if hydraulics_optional is None else hydraulics_optional
    manipulator, declared = read_model(urdf, hydraulics, initial)
    settings = config if isinstance(config, Settings) else read_settings(config, manipulator.actuators)
    topics = {**settings.topics, **(topics or {})}
    with open_bag(bag) as source:
        channels = find_topics(source, manipulator, topics)
        if hydraulics_optional and not channels.hydraulic:
            declared = None
        predictor = Predictor(manipulator, declared, settings.filter.make(channels.period))
        quality = Quality(channels, manipulator, declared)
        simulation, traces, diagnosis = SimulationError(predictor), Traces(), Diagnosis(predictor, channels)
        late = topic_delays(source, channels, predictor, settings.delays) if align and settings.align else {}
        delays = {name: delay_of(late, channels, name) for name in manipulator.actuators}
        noise = SensorNoise(predictor)
        metrics = MetricsAccumulator(manipulator, predictor.mechanism, capacities(manipulator, declared),
                                     quality=quality, delays=delays, noise=noise.rms)
        taken = {topic: delay for topic, delay in late.items() if delay.taken}
        recorded = blocks(source, channels, manipulator, declared, rows=rows,
                          overlap_s=max(OVERLAP, predictor.filter.half * channels.period), quality=quality,
                          delays=settings.delays | {topic: delay.taken for topic, delay in taken.items()})
        with _predicted(output, source, manipulator, predicted_rate) as predicted:
            _take(recorded, predictor, (metrics, simulation, traces, quality.units, *predicted), (diagnosis, noise),
                  None if quiet else source)
        verdict = judge(metrics, source, settings, skipped=predictor.skipped)
        causes, text = _causes(verdict, quality, diagnosis, taken)
        del diagnosis       # figures need room, too
        seconds = (source.end_ns - source.start_ns) * 1e-9
        found = Validation(verdict.with_cause(causes, late), metrics, simulation.errors(), traces, quality, channels,
                           settings, predictor, Path(source.path), seconds, late, causes, text)
    if output is not None:
        _write(found, output, bag, manipulator, declared, topics)
    return found


def _take(recorded: Any, predictor: Predictor, takers: Any, of_blocks: Any, shown: Any) -> None:
    """Predict the blocks that were recorded; takers get the predictions, those `of_blocks` the blocks, too.

    shown  the `BagSource` whose progress is shown; None: none is
    """
    with tqdm(total=100, unit='%', disable=None if shown else True, leave=False,
              bar_format='{desc}{bar} {n:.0f} %') as bar:
        for block in recorded:
            prediction = predictor.predict(block)
            if prediction is not None:
                for taker in takers:
                    taker.add(prediction)
                for taker in of_blocks:
                    taker.add(block, prediction)
            if shown:
                bar.update(100.0 * shown.progress - bar.n)


def _write(found: Validation, output: File, bag: File, manipulator: Manipulator, hydraulics: Hydraulics | None,
           topics: Mapping[str, Any]) -> None:
    from .report.validation_report import write_outputs  # figures take a second to import

    write_outputs(output, found, write_playback(output, bag, manipulator, hydraulics=hydraulics, topics=topics))


def _causes(verdict: Any, quality: Any, diagnosis: Any, taken: Any) -> tuple[tuple[Any, ...], str]:
    """(causes, what they come to in words); none where they would explain units, or rest on next to no motion."""
    if verdict.verdict == UNDECIDED:
        return (), verdict.reasons[-1]
    if any(quality.units.findings()) or any(quality.dead()):
        return (), 'units or sensors look wrong, see the quality of the data; causes are looked for once they are right'
    return diagnosis.causes(quality, taken), diagnosis.text


@contextmanager
def _predicted(output: Any, source: Any, manipulator: Manipulator, rate: float | None) -> Iterator[tuple[Any, ...]]:
    """The `PredictedBag` in the folder of the outputs, alone in a tuple; none where there is no such folder or rate."""
    if output is None or rate is None:
        yield ()
        return
    folder = (Path(output) / FOLDER).resolve()
    bag = Path(source.path).resolve()
    if folder in (bag, bag.parent):
        raise BagError(f"bag '{source.path}' would be replaced by what is predicted from it; choose another --output")
    if folder.is_dir() and any(folder.iterdir()) and not is_predicted(folder):
        raise BagError(f"'{folder}' is no bag of predictions and would be replaced by one; choose another --output")
    with PredictedBag(folder, manipulator, source.start_ns, rate) as bag:
        yield (bag,)


def read_model(urdf: str | PathLike[str] | Manipulator, hydraulics: Any = None,
               initial: Mapping[str, float] | None = None) -> tuple[Manipulator, Hydraulics | None]:
    """(Manipulator, Hydraulics or None), as `validate` takes them."""
    manipulator = urdf if isinstance(urdf, Manipulator) else load(urdf, initial=initial)
    if hydraulics is None and isinstance(urdf, (str, Path)) and not Path(urdf).is_file():
        hydraulics = find_config(f'{urdf}_hydraulics.yaml')
    if isinstance(hydraulics, (str, Path)) and hydraulics:
        hydraulics = read_hydraulics(hydraulics, manipulator.actuators)
    return manipulator, hydraulics or None
