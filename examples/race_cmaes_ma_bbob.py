"""Case study 2: which step-size adaptation of CMA-ES is worth keeping on MA-BBOB, when the budget is unknown.

    python examples/race_cmaes_ma_bbob.py                      # dimension 5, until every pair is settled: some minutes
    python examples/race_cmaes_ma_bbob.py --quick              # seconds
    python examples/race_cmaes_ma_bbob.py --dimension 30 --timepoints 200 --guard none     # as in the paper: 75 minutes

Interrupted, it goes on from its journal.  Needs the extra ``ioh``.
"""

from __future__ import annotations

from case_study import Study, main

STUDY = Study(
    portfolio="modcma-ssa",
    suite="ma-bbob",
    suite_options=lambda options: {"dimension": options.dimension},
    horizon=lambda options: float(options.budget or 2000 * options.dimension),
    first=lambda horizon: min(100.0, horizon / 20),
    whole=True,
    unit="evaluations",
    optimum_is_zero=True,
)

if __name__ == "__main__":
    main(STUDY, __doc__)
