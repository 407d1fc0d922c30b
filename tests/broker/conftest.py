"""The helpers of the server's and the apps' tests are ours as well."""

import sys
from pathlib import Path

for beside in ("server", "apps"):
    sys.path.append(str(Path(__file__).parent.parent / beside))
