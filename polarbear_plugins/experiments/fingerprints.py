"""Fingerprints of algorithms and problems that were given as Python, to notice that they changed under the same names.

A journal cannot store functions.  It stores a hash of what can be hashed of them: bytecode, constants, defaults, what
they close over, the functions and constants of the same module that they use, attributes of objects, and plain data.
Of anything else only its type counts, so equal fingerprints are no proof that nothing has changed.
"""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))


def fingerprint(value: object) -> str:
    """Hash of a function, an object or plain data; bytecode differs between versions of Python.

    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 1)
    True
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    """
    try:
        return _Walk().hash(value).hex()
    except Exception:  # attributes that raise, nesting without end: what they do is the user's business
        return _Walk().hash(type(value).__qualname__).hex()


class _Walk:
    """One walk through an object and all it refers to."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}  # objects on the way here, which may refer to each other in a circle
        self._done: dict[int, tuple[bytes, object]] = {}  # with the object, so that its number is not used again

    def hash(self, value: object) -> bytes:
        """Hash of a value."""
        if isinstance(value, _PLAIN):
            return self._of("plain", ascii((type(value).__name__, value)).encode())
        if id(value) in self._open:
            return self._of("circle", str(self._open[id(value)]).encode())
        if id(value) not in self._done:
            self._open[id(value)] = len(self._open)
            found = self._of(type(value).__qualname__, *self._parts(value))
            del self._open[id(value)]
            self._done[id(value)] = found, value
        return self._done[id(value)][0]

    def _of(self, kind: str, *parts: bytes) -> bytes:
        digest = hashlib.blake2b(kind.encode(), digest_size=16)
        for part in parts:
            digest.update(len(part).to_bytes(8, "big") + part)
        return digest.digest()

    def _all(self, values: Iterable[object]) -> list[bytes]:
        return [self.hash(value) for value in values]

    def _parts(self, value: Any) -> list[bytes]:
        match value:
            case np.ndarray() | np.generic() if not value.dtype.hasobject:
                return [ascii((value.dtype.str, value.shape)).encode(), value.tobytes()]
            case list() | tuple():
                return self._all(value)
            case set() | frozenset():
                return sorted(self._all(value))
            case Mapping():
                return [part for key in value for part in (self.hash(key), self.hash(value[key]))]
            case functools.partial():
                return self._all((value.func, value.args, value.keywords))
            case types.MethodType():
                return self._all((value.__func__, value.__self__))
            case types.FunctionType():
                return self._function(value)
            case types.CodeType():
                return self._code(value)
            case types.ModuleType():
                return [value.__name__.encode()]
            case type():
                return self._class(value)
        return self._object(value)

    def _function(self, function: types.FunctionType) -> list[bytes]:
        closed = []
        for cell in function.__closure__ or ():
            try:
                closed.append(cell.cell_contents)
            except ValueError:  # not assigned yet
                closed.append(None)
        return [
            *self._code(function.__code__, without=function.__doc__),
            *self._all((function.__defaults__, function.__kwdefaults__, closed)),
            *self._all(_used_of_its_module(function)),
        ]

    def _code(self, code: types.CodeType, without: object = None) -> list[bytes]:
        constants = [constant for constant in code.co_consts if constant is not without or without is None]
        names = code.co_names, code.co_varnames, code.co_freevars
        return [code.co_code, code.co_exceptiontable, *self._all((code.co_argcount, code.co_flags, names, constants))]

    def _class(self, kind: type) -> list[bytes]:
        # Without its module, which is __main__ for a script and the name of the file for whoever imports it.
        name = kind.__qualname__.encode()
        known = [
            member
            for key, member in sorted(vars(kind).items())
            # Attributes that Python sets say where a class is, or describe it.
            if isinstance(member, types.FunctionType) or (isinstance(member, _PLAIN) and not key.startswith("__"))
        ]
        return [name, *self._all(known), *self._all(base for base in kind.__bases__ if base is not object)]

    def _object(self, value: Any) -> list[bytes]:
        attributes = dict(getattr(value, "__dict__", {}))
        for kind in type(value).__mro__:
            for name in getattr(kind, "__slots__", ()):
                if isinstance(name, str) and hasattr(value, name):
                    attributes[name] = getattr(value, name)
        return self._all((type(value), attributes))


def _used_of_its_module(function: types.FunctionType) -> list[object]:
    """Functions, classes and constants of the same module that a function names."""
    used = [function.__globals__.get(name) for name in sorted(set(_names(function.__code__)))]
    return [
        value
        for value in used
        if (isinstance(value, types.FunctionType | type) and value.__module__ == function.__module__)
        or (isinstance(value, _PLAIN) and value is not None)
    ]


def _names(code: types.CodeType) -> Iterable[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
