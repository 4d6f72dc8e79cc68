"""Errors of Octet. Each message is one sentence: who, the expected value, the actual value, where, the remedy."""


class Error(Exception):
    """Every error of Octet. `exit_code` is that of the program `octet` (docs/errors.md)."""

    exit_code = 70


class ConfigError(Error, ValueError):
    """An invalid configuration or argument."""

    exit_code = 2


class DataError(Error, ValueError):
    """A file is damaged, truncated or of the wrong kind."""

    exit_code = 64


class DeviceError(Error, RuntimeError):
    """The machine lacks memory, an instruction set or a GPU."""

    exit_code = 69


class ContractError(Error, RuntimeError):
    """A caller inside Octet broke the contract of a function: a defect, or a shape that a function does not take."""

    exit_code = 70


class IoError(Error, OSError):
    """The operating system refused to read or write."""

    exit_code = 74


class Interrupted(Error, RuntimeError):
    """Stopped by a request from elsewhere, such as another call that Ctrl-C ended."""

    exit_code = 75


class RanksError(Error, RuntimeError):
    """Another rank is lost, late or called something else."""

    exit_code = 76


class DivergedError(Error, ArithmeticError):
    """Training diverged: too many non-finite steps in a row."""

    exit_code = 90
