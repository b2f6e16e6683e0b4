"""Machines in 3-D, in a browser: one page that needs no network, and a server of the loopback for what is live."""

from .motion import Motion, Signal
from .page import check_page, machine_page, write_page

__all__ = ['Motion', 'Signal', 'check_page', 'machine_page', 'write_page']
