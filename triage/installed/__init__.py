"""An engine as it is installed: its source, its packages, its plugins; and a model's config.json.

In:  the Python that runs the engine. Out: Installed and Model of triage.core.inspection.
Not: importing or running any of it: source is parsed, metadata is read.
"""

from triage.installed.engine import installed_engine
from triage.installed.model import read_model

__all__ = ["installed_engine", "read_model"]
