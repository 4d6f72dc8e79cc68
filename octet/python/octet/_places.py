"""Where a wheel has the parts that the program and the module open when they first use them."""

import os
import pathlib

PACKAGE = pathlib.Path(__file__).resolve().parent


def set_places() -> None:
    """Names the MPI module of the wheel, and the folders of NVIDIA's packages beside it, unless the user did."""
    module = PACKAGE / "lib" / "octet" / "liboctet_mpi.so"
    if module.exists():
        os.environ.setdefault("OCTET_MPI_MODULE", str(module))
    folders = sorted(str(folder) for folder in PACKAGE.parent.glob("nvidia/*/lib"))
    if folders:
        os.environ.setdefault("OCTET_CUDA_LIBRARIES", os.pathsep.join(folders))
