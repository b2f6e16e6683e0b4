"""How long the benchmark runs, and on which sizes of machines."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    rounds: int
    slot: float  # seconds for one engine in one round
    loops: tuple  # sizes of the chains for all engines
    our_loops: tuple  # sizes of the chains for ours alone
    modules: tuple  # sizes of the chains of three kinds of loops
    strokes: int
    cold: bool


FULL = Effort(25, 0.04, (1, 2, 4, 8, 16, 32, 64, 128), (1, 8, 32, 128, 512, 1000), (1, 4, 16, 64),
              20000, True)
QUICK = Effort(9, 0.015, (1, 8, 32, 128), (1, 8, 128, 1000), (1, 4, 16), 2000, False)
