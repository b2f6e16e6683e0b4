"""`__repr__` of records that hold arrays and other records: what each field holds, in a line."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

MAX_NUMBERS, MAX_NAMES, MAX_CHARACTERS = 4, 4, 30         # of a field that are printed


def short_repr(record: Any) -> str:
    """Return 'Type(field=..., ...)' of a dataclass, without the fields that have their defaults.

    Arrays are there by their shape, collections by the names of their entries, other records by their name or type.
    """
    values = [(each, getattr(record, each.name)) for each in fields(record) if each.repr]
    texts = [f'{each.name}={_short(value)}' for each, value in values
             if isinstance(value, np.ndarray) or value != each.default]
    return f'{type(record).__name__}({", ".join(texts)})'


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f'({", ".join(f"{one:.4g}" for one in value.tolist())})' if (
            value.ndim == 1 and value.size <= MAX_NUMBERS and value.dtype.kind in 'fiu') else f'array{value.shape}'
    if isinstance(value, float):
        return f'{value:.6g}'
    if isinstance(value, str) or value is None or isinstance(value, int):
        text = repr(value)
        return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}...' ({len(text)} characters)"
    if isinstance(value, (Mapping, tuple, list)):
        return f'[{_listed(value)}]'
    return name_of(value)


def _listed(values: Iterable[Any]) -> str:
    texts = [name_of(value) for value in values]
    return ', '.join(texts[:MAX_NAMES]) + (f', ... {len(texts)} in all' if len(texts) > MAX_NAMES else '')


def name_of(value: Any) -> str:
    """Return what identifies a value among others of its kind: its name, or its type."""
    if isinstance(value, (str, int, float)):
        return str(value)
    for attribute in ('name', 'link'):
        if isinstance(getattr(value, attribute, None), str):
            return str(getattr(value, attribute))
    return type(value).__name__
