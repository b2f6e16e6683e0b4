"""Running a node: from the command line to the exit code, with an end on SIGINT and SIGTERM."""

import gc
import os
import signal
import sys
import traceback

import rclpy
from rcl_interfaces.msg import SetParametersResult
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.parameter_service import ParameterService
from rclpy.signals import SignalHandlerOptions

from ...model.errors import PsdynError
from . import parameters
from .transport import without_shared_memory

WAKE_UP = 0.2       # s; a signal is seen after this time at the latest
SUCCESS, UNUSABLE, INTERNAL = 0, 2, 70
NUMBERS = signal.SIGINT, signal.SIGTERM


def make_executor(context=None):
    """Return the event-driven executor of rclpy, or its single-threaded one where rclpy has no other.

    The event-driven one takes half the processor time. Serve it by `spin_once` with a timeout: its `spin()` keeps a
    core busy while nothing happens, and Python's signal handlers do not run until it returns.
    """
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor(context=context)
    return EventsExecutor(context=context)


def spin(node, stopped, turn=None):
    """Serve the node until `stopped()` or until its context is shut down.

    turn  called between two callbacks; it returns the longest time [s] to wait for the next callback
    """
    executor = make_executor()
    executor.add_node(node)
    try:
        while rclpy.ok() and not stopped():
            executor.spin_once(timeout_sec=WAKE_UP if turn is None else min(turn(), WAKE_UP))
    finally:
        executor.remove_node(node)
        executor.shutdown()


def plain_node(name, **options):
    """An ordinary node; whether others may see its parameters is one of them, which is known only when it is made."""
    node = rclpy.create_node(name, start_parameter_services=False, **options)
    simulated = node.get_parameter('use_sim_time').value

    def judge(given):
        changed = any(one.name == 'use_sim_time' and one.value != simulated for one in given)
        return SetParametersResult(successful=not changed, reason='use_sim_time: may be given only when the node starts'
                                   if changed else '')

    node.add_on_set_parameters_callback(judge)
    return node


def run(name, build, args=None, make=plain_node):
    """Make the node `name`, let `build(node)` put its work on it, serve it; the exit code of the process.

    The work may have a `turn`, as `spin` takes it; a `may_end`, asked after a signal until it returns True, while the
    node is still served; and an `end(failure)`, called when the node is no longer served, with the exception that ended
    it, or None. `make` is `plain_node` or the like.
    """
    os.environ.update(without_shared_memory(os.environ))
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:      # what rclpy raises for arguments that it cannot read has no public name
        print(f'{name}: {error}', file=sys.stderr)
        return UNUSABLE
    signals = _Signals()
    node = None
    try:
        # also parameters whose names come with the machine, such as those of external forces
        node = make(name, automatically_declare_parameters_from_overrides=True)
        work = build(node)      # held here: the node itself keeps callbacks only
        if make is plain_node:
            parameters.warn_of_unknown(node)
        services = ParameterService(node) if make is plain_node and _offers_parameters(node) else None
        signals.node = node
        gc.collect()
        gc.freeze()             # what lives as long as the process is no longer searched for garbage
        _serve(node, work, lambda: signals.received)
        del work, services
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except PsdynError as error:
        print(f'{name}: {error}', file=sys.stderr)
        return UNUSABLE
    except Exception:
        traceback.print_exc()
        return INTERNAL
    finally:
        _ignore_signals()
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
    return SUCCESS


def _offers_parameters(node):
    return not node.has_parameter('parameter_services') or node.get_parameter('parameter_services').value


def _serve(node, work, stopped):
    """Serve the node, and let its work come to an orderly end, whatever ends it."""
    end = getattr(work, 'end', lambda failure: None)
    may_end = getattr(work, 'may_end', lambda: True)
    try:
        spin(node, lambda: stopped() and may_end(), getattr(work, 'turn', None))
    except Exception as failure:
        end(failure)
        raise
    end(None)


def _ignore_signals():
    """Let no further signal disturb the end; the interpreter takes its handlers back before it has ended."""
    for number in NUMBERS:
        signal.signal(number, signal.SIG_IGN)


class _Signals:
    """SIGINT and SIGTERM: noted where a `node` is served, which ends in order; else the first interrupts what is done.

    A node that configures commands nothing, and may compile for minutes: it is interrupted too.
    """

    def __init__(self):
        self.node, self.received = None, False
        for number in NUMBERS:
            signal.signal(number, self._take)

    def _take(self, number, frame):
        first, self.received = not self.received, True
        if first and (self.node is None or getattr(self.node, 'configuring', False)):
            raise KeyboardInterrupt
