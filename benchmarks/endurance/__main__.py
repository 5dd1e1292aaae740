"""Run every script of this folder; see run_folder.py."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from run_folder import main

sys.exit(main(Path(__file__).parent))
