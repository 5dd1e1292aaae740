"""Everything that reads a user's file: how real files of its kind are made, how they are read, and changes to them.

A reader gets a folder.  Its seeds are folders too, made by the writers of this repository and its examples, so that
anybody can make them; real data beside the repository (``../shared/data``) are added where they are.
"""

from __future__ import annotations

from fuzzing.kinds import Reader
from fuzzing.readers import bayesmark, coco, ioh, optuna, own, scores, surrogates, tables, texts

READERS: dict[str, Reader] = {
    **tables.READERS,
    **ioh.READERS,
    **coco.READERS,
    **bayesmark.READERS,
    **optuna.READERS,
    **surrogates.READERS,
    **scores.READERS,
    **own.READERS,
    **texts.READERS,
}
