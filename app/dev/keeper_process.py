"""Run the keeper: ``python -P app/dev/keeper_process.py FOLDER``.

It needs :mod:`app.dev` alone, so the package ``app`` is an empty one here: importing the whole
service would cost seconds at each start of the engines, and memory for as long as they run.
"""

import sys
from pathlib import Path
from types import ModuleType

service = ModuleType("app")
service.__path__ = [str(Path(__file__).parents[1])]
sys.modules["app"] = service

from app.dev.keeper import main  # noqa: E402

sys.exit(main())
