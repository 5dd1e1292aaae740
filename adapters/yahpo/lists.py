"""The benchmark suites YAHPO-SO and YAHPO-MO, version 1 (Pfisterer et al. 2022, Tables 3 and 4)."""

from __future__ import annotations

from typing import TypeAlias

#: Scenario, instance, targets.
Entry: TypeAlias = tuple[str, str, tuple[str, ...]]


def _entries(scenario: str, targets: str, *instances: str) -> list[Entry]:
    return [(scenario, instance, tuple(targets.split())) for instance in instances]


_SINGLE = [
    *_entries("lcbench", "val_accuracy", "167168", "189873", "189906"),
    *_entries("nb301", "val_accuracy", "CIFAR10"),
    *_entries("rbv2_glmnet", "acc", "375", "458"),
    *_entries("rbv2_ranger", "acc", "16", "42"),
    *_entries("rbv2_rpart", "acc", "14", "40499"),
    *_entries("rbv2_super", "acc", "1053", "1457", "1063", "1479", "15", "1468"),
    *_entries("rbv2_xgboost", "acc", "12", "1501", "16", "40499"),
]
_SEVERAL = [
    *_entries("iaml_glmnet", "mmce nf", "1489", "1067"),
    *_entries("iaml_ranger", "mmce nf ias", "1489", "1067"),
    *_entries("iaml_super", "mmce nf ias", "1489", "1067"),
    *_entries("iaml_xgboost", "mmce nf ias", "40981", "1489"),
    *_entries("iaml_xgboost", "mmce nf ias rammodel", "40981", "1489"),
    *_entries("lcbench", "val_accuracy val_cross_entropy", "167152", "167185", "189873"),
    *_entries("rbv2_ranger", "acc memory", "6", "40979", "375"),
    *_entries("rbv2_rpart", "acc memory", "41163", "1476", "40499"),
    *_entries("rbv2_super", "acc memory", "1457", "6", "1053"),
    *_entries("rbv2_xgboost", "acc memory", "28", "182", "12"),
]

LISTS: dict[str, tuple[Entry, ...]] = {"yahpo-so": tuple(_SINGLE), "yahpo-mo": tuple(_SEVERAL)}
