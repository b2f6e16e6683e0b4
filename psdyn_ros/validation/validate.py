"""Does the model tell the truth about a recorded machine?  A bag and a URDF in, a verdict out."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from ..api.load import load
from ..api.manipulator import Manipulator
from ..model.locate import find_config, find_machine
from ..model.parameters.hydraulics import read_hydraulics
from .bags.predicted_bag import FOLDER, RATE, PredictedBag
from .bags.recording import BagError
from .bags.source import open_bag
from .diagnosis.diagnosis import Diagnosis
from .diagnosis.topic_delays import delay_of, topic_delays
from .metrics.metrics import MetricsAccumulator, capacities
from .metrics.prediction import Predictor
from .metrics.simulation_error import SimulationError
from .metrics.tolerances import Settings, read_settings
from .metrics.verdict import Verdict, judge
from .playback import MAX_SECONDS, write_playback
from .report.plot_samples import Traces
from .signals.blocks import OVERLAP, ROWS, blocks
from .signals.quality import Quality
from .signals.topics import Channels, find_topics


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

    @property
    def manipulator(self):
        """The model."""
        return self.predictor.manipulator


def validate(bag, urdf, *, hydraulics=None, config=None, output=None, topics=None, initial=None, rows=ROWS, quiet=True,
             align=True, predicted_rate=RATE, hydraulics_optional=None):
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
    rows        of a block
    quiet       no progress bar
    align       whether delays between topics are looked for and taken off, unless the config says that they are not
    hydraulics_optional  whether `hydraulics` count only where the bag has chamber pressures; None: where they are None

    Reads the bag once, beside the beginning of each topic and as much of it as delays need, with memory that does not
    grow with it. Raises BagError where it is unreadable or of another machine, ModelError where files do not fit.
    """
    if hydraulics_optional is None:
        hydraulics_optional = hydraulics is None
    manipulator, hydraulics = read_model(urdf, hydraulics, initial)
    settings = config if isinstance(config, Settings) else read_settings(config, manipulator.actuators)
    with open_bag(bag) as source:
        channels = find_topics(source, manipulator, {**settings.topics, **(topics or {})})
        if hydraulics_optional and not channels.hydraulic:
            hydraulics = None
        smooth = settings.filter.make(channels.period)
        predictor = Predictor(manipulator, hydraulics, smooth)
        quality = Quality(channels, manipulator, hydraulics)
        simulation, traces = SimulationError(predictor), Traces()
        diagnosis = Diagnosis(predictor, channels)
        late = topic_delays(source, channels, predictor, settings.delays) if align and settings.align else {}
        metrics = MetricsAccumulator(
            manipulator, predictor.mechanism, capacities(manipulator, hydraulics), quality=quality,
            delays={name: delay_of(late, channels, name) for name in manipulator.actuators})
        taken = {topic: delay.taken for topic, delay in late.items() if delay.taken}
        overlap = max(OVERLAP, smooth.half * channels.period)
        with tqdm(total=100, unit='%', disable=True if quiet else None, leave=False,
                  bar_format='{desc}{bar} {n:.0f} %') as bar, _predicted(output, source, manipulator,
                                                                         predicted_rate) as predicted:
            for block in blocks(source, channels, manipulator, hydraulics, rows=rows, overlap_s=overlap,
                                quality=quality, delays={**settings.delays, **taken}):
                prediction = predictor.predict(block)
                if prediction is not None:
                    for taker in (metrics, simulation, traces, *predicted):
                        taker.add(prediction)
                    diagnosis.add(block, prediction)
                bar.update(100.0 * source.progress - bar.n)
        verdict = judge(metrics, source, settings, skipped=predictor.skipped)
        found = Validation(verdict, metrics, simulation.errors(), traces, quality, channels, settings, predictor,
                           Path(source.path), (source.end_ns - source.start_ns) * 1e-9,
                           late, diagnosis.causes(quality, taken), diagnosis.text)
    if output is not None:
        # figures take a second to import
        from .report.validation_report import write_outputs
        playback = write_playback(output, bag, manipulator, hydraulics=hydraulics, topics={
            **settings.topics, **(topics or {})}) if found.duration <= MAX_SECONDS else None
        write_outputs(output, found, playback)
    return found


@contextmanager
def _predicted(output, source, manipulator, rate):
    """The `PredictedBag` in the folder of the outputs, alone in a tuple; none where there is no such folder or rate."""
    if output is None or rate is None:
        yield ()
        return
    folder = (Path(output) / FOLDER).resolve()
    bag = Path(source.path).resolve()
    if folder in (bag, bag.parent):
        raise BagError(f"bag '{source.path}' would be replaced by what is predicted from it; choose another --output")
    with PredictedBag(folder, manipulator, source.start_ns, rate) as bag:
        yield (bag,)


def read_model(urdf, hydraulics=None, initial=None):
    """(Manipulator, Hydraulics or None), as `validate` takes them."""
    manipulator = urdf if isinstance(urdf, Manipulator) else load(find_machine(urdf), initial=initial)
    if hydraulics is None and isinstance(urdf, (str, Path)) and not Path(urdf).is_file():
        hydraulics = find_config(f'{urdf}_hydraulics.yaml')
    if isinstance(hydraulics, (str, Path)) and hydraulics:
        hydraulics = read_hydraulics(hydraulics, manipulator.actuators)
    return manipulator, hydraulics or None
