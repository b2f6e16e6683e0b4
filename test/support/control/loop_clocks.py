"""A clock made of numbers, and the cycles of a loop on it."""

from psdyn_ros.nodes.controller.loop import ControlLoop

PERIOD = 2_000_000


class Clock:
    """ns that pass only when somebody says so; a sleep ends `late` ns after its deadline."""

    def __init__(self):
        self.ns, self.late, self.slept = 1_000_000_000, 0, []

    def now(self):
        return self.ns

    spent = now

    def sleep_until(self, deadline):
        self.slept.append(deadline)
        self.ns = max(self.ns, deadline + self.late)


class Cycles:
    """Cycles of a loop that take so many ns each; (now, dt) of each is kept."""

    def __init__(self, clock, period=PERIOD, **options):
        self.clock, self.took, self.done = clock, 100_000, []
        self.loop = ControlLoop(period, self._cycle, clock=clock, **options)

    def _cycle(self, now, dt):
        self.done.append((now, dt))
        self.clock.ns += self.took

    def starts(self):
        return [now - self.done[0][0] for now, _ in self.done]

    def spin(self, ns, callback=lambda: None):
        """As an executor does: a callback takes the time that it takes, or nothing comes and the wait ends."""
        end = self.clock.ns + ns
        while self.clock.ns < end:
            wait = round(self.loop.turn() * 1e9)
            before = self.clock.ns
            callback()
            if self.clock.ns == before:
                self.clock.ns += wait
