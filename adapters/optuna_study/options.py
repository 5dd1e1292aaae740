"""Options of reading Optuna studies: what time is, which studies, and how they name algorithm and instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from polarbear_plugins.adapters.optuna_study.name_pattern import Label, NamePattern
from polarbear_plugins.errors import InvalidInputError, SourceError, short
from polarbear_plugins.names import as_name
from polarbear_plugins.options import Reader, one_of, read_options

if TYPE_CHECKING:
    import optuna

#: Number of the trial, seconds since the first trial began, or the resource that trials report as step.
TimeAxis: TypeAlias = Literal["trials", "seconds", "step"]

_ROLES = ("algorithm", "instance", "seed", "group")
_DEFAULT_PATTERNS = (NamePattern("{algorithm}-{instance}-{seed}"), NamePattern("{algorithm}-{instance}"))


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """How to read studies.

    Parameters
    ----------
    time
        ``trials``: the number of the trial; ``seconds``: since the first trial began; ``step``: the resource reported
        as step, one trial after another.
    pattern
        How the names of the studies are made of algorithm, instance, seed and group: a :class:`NamePattern`.
    attributes
        Which user attributes of the studies hold them: ``{"algorithm": "sampler", "instance": "problem"}``.
    label
        A function of a study that returns them: ``(algorithm, instance)``, ``(algorithm, instance, seed)`` or
        ``(algorithm, instance, seed, group)``.
    group
        Which user attribute of the studies holds the group of their instance, however the rest is found.
    studies
        Which studies to read: a pattern of names such as ``tpe-*``.
    """

    time: TimeAxis = "trials"
    pattern: NamePattern | None = None
    attributes: Mapping[str, str] | None = None
    label: Callable[[optuna.Study], Sequence[object]] | None = None
    group: str | None = None
    studies: str = "*"

    @classmethod
    def parse(cls, options: Mapping[str, object]) -> StudyOptions:
        """Check options as they come: objects from Python, text from the command line."""
        present = {name: value for name, value in options.items() if value is not None or name not in _READERS}
        given = read_options(present, _READERS, "The reader of Optuna studies")
        ways = [way for way in ("pattern", "attributes", "label") if way in given]
        if len(ways) > 1:
            raise InvalidInputError(f"{' and '.join(ways)} both say what algorithm and instance are. Give one of them.")
        return cls(**given)

    def label_of(self, study: optuna.Study) -> Label:
        """Algorithm, instance, seed and group of a study."""
        who = f"The study {study.study_name!r}"
        label = self._label_of(study, who)
        if self.group is None:
            return label
        group = study.user_attrs.get(self.group)
        if group is None:
            raise SourceError(f"{who} has no user attribute {self.group!r}, which should hold the group.")
        try:
            return replace(label, group=as_name(group, "group"))
        except InvalidInputError as problem:
            raise SourceError(f"{who}: {problem}") from None

    def _label_of(self, study: optuna.Study, who: str) -> Label:
        if self.label is not None:
            parts: Any = self.label(study)
            if isinstance(parts, str) or not isinstance(parts, Sequence) or not 2 <= len(parts) <= len(_ROLES):
                raise InvalidInputError(
                    f"label: expected (algorithm, instance), possibly with seed and group after them, got {parts!r}."
                )
            return Label.of(dict(zip(_ROLES, parts, strict=False)), who)
        attributes = {role: role for role in _ROLES} if self.attributes is None else self.attributes
        found = {role: study.user_attrs.get(name) for role, name in attributes.items()}
        if self.pattern is None and (
            self.attributes is not None or None not in (found["algorithm"], found["instance"])
        ):
            for role in ("algorithm", "instance"):
                if found.get(role) is None:
                    raise SourceError(
                        f"{who} has no user attribute {attributes.get(role, role)!r}, which should hold the {role}."
                    )
            return Label.of(found, who)
        patterns = _DEFAULT_PATTERNS if self.pattern is None else (self.pattern,)
        for pattern in patterns:
            label = pattern.read(study.study_name)
            if label is not None:
                return label
        expected = " or ".join(pattern.text for pattern in patterns)
        raise SourceError(
            f"{who}: the name does not match {expected}. Say with pattern=, attributes= or label= where to find "
            "algorithm and instance, or leave the study out with studies=."
        )


def _read_pattern(given: Any, _: str) -> NamePattern:
    return NamePattern(given)


def _read_attributes(given: object, what: str) -> dict[str, str]:
    if isinstance(given, str):
        given = dict(pair.partition("=")[::2] for pair in given.replace(" ", "").split(","))
    names = dict(given) if isinstance(given, Mapping) else {}
    if not names or not set(names) <= set(_ROLES) or not all(isinstance(name, str) and name for name in names.values()):
        raise InvalidInputError(
            f"{what}: expected algorithm=NAME,instance=NAME and possibly seed=NAME,group=NAME, got {given!r}."
        )
    return {"algorithm": "algorithm", "instance": "instance"} | names


def _read_label(given: object, what: str) -> object:
    if not callable(given):
        raise InvalidInputError(f"{what}: expected a function of a study, got {short(given)}.")
    return given


def _read_group(given: object, what: str) -> str:
    if not isinstance(given, str) or not given:
        raise InvalidInputError(f"{what}: expected the name of a user attribute, got {short(given)}.")
    return given


def _read_studies(given: object, what: str) -> str:
    if not isinstance(given, str):
        raise InvalidInputError(f"{what}: expected a pattern of names such as 'tpe-*', got {short(given)}.")
    return given


_READERS: dict[str, Reader] = {
    "time": one_of(get_args(TimeAxis)),
    "pattern": _read_pattern,
    "attributes": _read_attributes,
    "label": _read_label,
    "group": _read_group,
    "studies": _read_studies,
}
