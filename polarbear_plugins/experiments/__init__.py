"""Experiments from beginning to end: races and campaigns."""

from polarbear_plugins.experiments.campaigns import CampaignResult, CampaignSettings, campaign
from polarbear_plugins.experiments.dry_runs import DryRun, dry_run
from polarbear_plugins.experiments.open_race import Race
from polarbear_plugins.experiments.races import race, resume
from polarbear_plugins.experiments.watching import Progress

__all__ = [
    "CampaignResult",
    "CampaignSettings",
    "DryRun",
    "Progress",
    "Race",
    "campaign",
    "dry_run",
    "race",
    "resume",
]
