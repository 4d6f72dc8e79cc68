"""Octet trains language models in 8-bit floating point (FP8).

    import octet
    tokens = octet.tokenize("docs/**/*.md", "data/docs")
    outcome = octet.train({"data": {"path": tokens.folder}, "recipe": {"name": "current"}, "train": {"steps": 100}})
    model = octet.Model.open(outcome.folder)
    print(model.generate("The "))

Nothing is printed. Lines that the program would print are records of `logging.getLogger("octet")`:
`logging.basicConfig(level=logging.INFO)` shows them.
"""

import logging

from ._places import set_places

set_places()  # before anything is opened

from . import fp8
from ._core import Arm, Comparison, Outcome, Plan, Step, Tokens
from ._core import version as __version__
from ._errors import (ConfigError, ContractError, DataError, DeviceError, DivergedError, Error, Interrupted, IoError, RanksError)
from ._model import Evaluation, Model
from ._runs import compare, plan, tokenize, train

logging.getLogger("octet").addHandler(logging.NullHandler())

__all__ = [
    "Arm", "Comparison", "ConfigError", "ContractError", "DataError", "DeviceError", "DivergedError", "Error", "Evaluation", "Interrupted",
    "IoError", "Model", "Outcome", "Plan", "RanksError", "Step", "Tokens", "__version__", "compare", "fp8", "plan", "tokenize", "train",
]
