r"""Case study 3: whether expensive covariance adaptation pays off in wall-clock time, on problems nobody knows.

    python examples/race_cmaes_gp_bbob.py                      # about 20 dimensions, 3 s a run: many minutes
    python examples/race_cmaes_gp_bbob.py --quick              # seconds
    python examples/race_cmaes_gp_bbob.py --dimension "normal(240, 30)[2, 320]" --budget 30 --timepoints 30 \
        --spacing uniform --prior bspline --elimination joint --resolution crossing --guard none     # the paper: days

Interrupted, it goes on from its journal.  Needs the extra ``ioh``.
"""

from __future__ import annotations

from case_study import Study, main

STUDY = Study(
    portfolio="modcma-matrix",
    suite="gp-bbob",
    suite_options=lambda options: {"dimension": options.dimension},
    horizon=lambda options: float(options.budget or 3),
    first=lambda horizon: horizon / 30,
    whole=False,
    unit="seconds",
    optimum_is_zero=False,
)

if __name__ == "__main__":
    main(STUDY, __doc__)
