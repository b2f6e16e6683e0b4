"""Positions of joints from text, as arguments and parameters give them."""

from .errors import ModelError


def joint_positions(text, what):
    """Return {joint: position [m, rad]} of a text such as 'elbow_1=-1.15 elbow_2=-2.61', also with commas.

    what: in errors, the argument or parameter. Raises ModelError that names the entry.
    """
    positions = {}
    for entry in text.replace(',', ' ').split():
        joint, _, value = entry.partition('=')
        try:
            positions[joint] = float(value)
        except ValueError:
            raise ModelError(f"{what} '{entry:.80}': expected JOINT=POSITION") from None
    return positions
