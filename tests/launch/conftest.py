"""Makes the folder's own modules importable, and its fixture known."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from launch_bench import bench, small_disk

__all__ = ["bench", "small_disk"]
