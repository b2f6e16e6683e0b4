"""`python3 -m psdyn_ros.cli`."""

import sys

from . import main

sys.exit(main())
