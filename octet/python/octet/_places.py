"""Where a wheel has the parts that the program and the module open when they first use them."""

import os
import pathlib
import sys

PACKAGE = pathlib.Path(__file__).resolve().parent


def set_places() -> None:
    """Names the MPI module of the wheel, and the folders of NVIDIA's packages, unless the user did: those beside it, then others that Python
    imports from, since `pip install --target` puts the wheel apart from them."""
    module = PACKAGE / "lib" / "octet" / "liboctet_mpi.so"
    if module.exists():
        os.environ.setdefault("OCTET_MPI_MODULE", str(module))
    places = dict.fromkeys([PACKAGE.parent, *(pathlib.Path(place).resolve() for place in sys.path if place)])
    folders = [str(folder) for place in places for folder in sorted(place.glob("nvidia/*/lib"))]
    if folders:
        os.environ.setdefault("OCTET_CUDA_LIBRARIES", os.pathsep.join(folders))
