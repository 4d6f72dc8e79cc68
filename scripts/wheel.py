"""Assembles wheels octet-train from a build folder: the package octet with its module, the program, and the libraries of both. There is one
wheel per module in the folder: of one version of Python, or, with the stable interface, of 3.12 and all later ones.

Usage: wheel.py BUILD OUTPUT. BUILD has python/octet, octet_of_wheel, liboctet_shared.so, which both need, and, where MPI is found,
liboctet_mpi.so: OCTET_PYTHON_MODULE=ON makes them. The libraries that the wheel has are those of LIBRARIES; all others, such as the C
library, are the system's. CUDA's are opened when a GPU is used. Needs strip, patchelf and objdump.
"""
import base64
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

LIBRARIES = ("octet_shared", "dnnl", "OpenCL", "gomp", "xxhash", "pcre2-8", "utf8proc", "zstd", "z")
MOST_BYTES = 60_000_000
root = pathlib.Path(__file__).resolve().parent.parent
NVIDIA = ("nvidia-cublas", "nvidia-cudnn-cu13", "nvidia-nccl-cu13", "nvidia-cuda-runtime")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def libraries_of(file):
    """Path of each shared library that the file needs, directly or through others, by its name."""
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", output_of("ldd", file), re.MULTILINE))


def copy(source, target, rpath):
    """A stripped copy that looks for libraries in rpath first, as do the libraries that it needs."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    target.chmod(0o755)
    subprocess.run(["strip", "--strip-unneeded", target], check=True)
    subprocess.run(["patchelf", "--force-rpath", "--set-rpath", rpath, target], check=True)


def glibc_of(files):
    """The version of glibc for the name of the wheel: the newest one whose symbols the files need, or one that systems with their newest
    symbols of libstdc++ have. Source: policies of auditwheel."""
    symbols = "".join(output_of("objdump", "-T", file) for file in files)
    versions = [tuple(map(int, v)) for v in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols)]
    libstdcxx = max((int(v) for v in re.findall(r"GLIBCXX_3\.4\.(\d+)", symbols)), default=0)
    if libstdcxx > 30:
        sys.exit(f"the wheel needs GLIBCXX_3.4.{libstdcxx}; build it with g++ 12, so that systems of its time can use it")
    return max([*versions, (2, 35) if libstdcxx == 30 else (2, 17)])


def metadata(version, least):
    lines = ["Metadata-Version: 2.1", "Name: octet-train", f"Version: {version}", "Summary: Training of language models in 8-bit floating point",
             "License: Apache-2.0", f"Requires-Python: >={least}", "Requires-Dist: numpy"]
    lines += ["Provides-Extra: torch", 'Requires-Dist: torch>=2.6; extra == "torch"']
    lines += ["Provides-Extra: cuda"] + [f'Requires-Dist: {name}; extra == "cuda"' for name in NVIDIA]
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", (root / "docs" / "python.md").read_text()])


def python_of(module):
    """The tags of the Python that takes the module, and its least version."""
    if module.name.endswith(".abi3.so"):
        return "cp312-abi3", "3.12"
    version = re.search(r"cpython-3(\d+)", module.name).group(1)
    return f"cp3{version}-cp3{version}", f"3.{version}"


def assemble(build, module, tree):
    package, program = tree / "octet", build / "octet_of_wheel"
    shutil.copytree(build / "python" / "octet", package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    copy(module, package / module.name, "$ORIGIN/libs")
    copy(program, package / "bin" / "octet", "$ORIGIN/../libs")
    for name in ("liboctet_mpi.so", "liboctet_loopback.so"):
        if (build / name).exists():
            copy(build / name, package / "lib" / "octet" / name, "$ORIGIN")
    for file, path in {**libraries_of(module), **libraries_of(program)}.items():
        if any(file.startswith(f"lib{name}.so") for name in LIBRARIES):
            copy(path, package / "libs" / file, "$ORIGIN")
    glibc = glibc_of([module, program, *(package / "libs").iterdir()])
    return f"{python_of(module)[0]}-manylinux_{glibc[0]}_{glibc[1]}_x86_64"


def write(tree, path):
    """A zip file with the same bytes for the same tree."""
    files = sorted(f for f in tree.rglob("*") if f.is_file())
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for file in files:
            name, data = str(file.relative_to(tree)), file.read_bytes()
            if name.endswith("/RECORD"):
                continue
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")
            add(wheel, name, data, file.stat().st_mode)
        name = next(str(f.parent.relative_to(tree)) for f in files if f.name == "WHEEL") + "/RECORD"
        add(wheel, name, "\n".join([*record, f"{name},,", ""]).encode(), 0o644)


def add(wheel, name, data, mode):
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.external_attr = (mode & 0o777 | 0o100000) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    wheel.writestr(info, data)


def make(build, module, version, output):
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        tag = assemble(build, module, tree)
        info = tree / f"octet_train-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(metadata(version, python_of(module)[1]))
        (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: octet\nRoot-Is-Purelib: false\nTag: {tag}\n")
        (info / "entry_points.txt").write_text("[console_scripts]\noctet = octet._program:main\n")
        shutil.copy(root / "LICENSE", info / "LICENSE")
        path = output / f"octet_train-{version}-{tag}.whl"
        write(tree, path)
    size = path.stat().st_size
    print(f"{path}: {size / 1e6:.1f} MB")
    if size > MOST_BYTES:
        sys.exit(f"{path}: more than {MOST_BYTES / 1e6:.0f} MB")


def main(build, output):
    version = re.search(r"project\(octet VERSION (\S+)", (root / "CMakeLists.txt").read_text()).group(1)
    modules = sorted((build / "python" / "octet").glob("_core*.so"))
    if not modules:
        sys.exit(f"{build}/python/octet has no module; build it with OCTET_PYTHON_MODULE=ON")
    for module in modules:
        make(build, module, version, output)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
