"""
The formulations as witnesses of a URDF: each makes what it needs of a `Mechanism`, or says why it does not apply.

What applies has, at a `Posture`, xd, xdd (dof,), efforts f (actuators,) and wrenches {link: (f, m)}:
`inverse(posture, xd, xdd, wrenches)` -> force on the coordinates (dof,), `forward(posture, xd, f, wrenches)` -> xdd
(dof,) and `mass_matrix(posture)` (dof, dof).  Losses of joints and pins are included.
"""
from typing import NamedTuple

from ...model.errors import ModelError
from .denoc import Legs
from .denoc_tree import Tree
from .mechanism import DoesNotApply, Mechanism
from .noc import NaturalOrthogonalComplement
from .paz_mattila import ChainOfModules
from .titop import TwoPorts


def _denoc(mechanism, posture):
    return (Legs if mechanism.closures else Tree)(mechanism, posture)


FORMULATIONS = {'NOC (Wang et al.)': NaturalOrthogonalComplement, 'TITOP (Alazard et al.)': TwoPorts,
                'DeNOC (Saha & Schiehlen)': _denoc, 'Paz & Mattila': ChainOfModules}


class Witness(NamedTuple):
    """A formulation and a machine: `dynamics`, or the `reason` why there is none."""

    name: str
    dynamics: object
    reason: str


def call_witnesses(mechanism, posture):
    """Return a `Witness` of every formulation; posture: one that is closed and regular."""
    witnesses = []
    for name, formulation in FORMULATIONS.items():
        try:
            if mechanism.mimics and formulation is not NaturalOrthogonalComplement:
                raise DoesNotApply(f"joint '{mechanism.mimics[0].name}' follows another without a joint between them")
            witnesses.append(Witness(name, formulation(mechanism, posture), ''))
        except (DoesNotApply, ModelError) as reason:
            witnesses.append(Witness(name, None, str(reason)))
    return witnesses


__all__ = ['FORMULATIONS', 'DoesNotApply', 'Mechanism', 'Witness', 'call_witnesses']
