"""What a block network can be refused for, beside the errors of the model."""
from ...model.errors import ModelError


class NetworkError(ModelError):
    """Blocks that are not wired into one machine, or are driven in two ways at once."""


class AlgebraicLoopError(NetworkError):
    """No accelerations solve the loop of wrenches and motions: nothing resists a joint or the base."""
