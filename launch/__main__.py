"""python -m launch: the command line."""

import sys

from launch.cli import main

sys.exit(main())
