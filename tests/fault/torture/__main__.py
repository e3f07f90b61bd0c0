"""python -m tests.fault.torture: see run.py."""

from __future__ import annotations

import sys

from tests.fault.torture.run import main

sys.exit(main())
