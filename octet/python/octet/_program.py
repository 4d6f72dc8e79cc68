"""The console script `octet` of the wheel: becomes the program."""

import os
import sys

from ._places import PACKAGE, set_places


def main() -> None:
    set_places()
    program = PACKAGE / "bin" / "octet"
    os.execv(program, ["octet", *sys.argv[1:]])
