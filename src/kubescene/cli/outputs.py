"""What ``--out`` names: never anything of somebody else's is overwritten.

A directory is replaced if it holds an earlier run; a file, if a command like this one wrote it.
"""

from collections.abc import Iterable
from pathlib import Path

from kubescene.errors import ConfigurationError

PAGE = b'content="Kubescene'
"""Stands in the head of every page that Kubescene writes."""
HEAD_BYTES = 4096


def check_file(path: Path, signs: Iterable[bytes]) -> None:
    """Raise `ConfigurationError` for a file that exists and has none of these at its beginning."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return  # there is none, or whoever writes it says what is wrong
    if head and not any(sign in head for sign in signs):
        raise ConfigurationError(
            f"{path} exists, and this command did not write it: choose another --out, or remove it"
        )


def check_folder(path: Path, files: Iterable[str], *, is_own: bool) -> None:
    """The same for a directory in which files of these names are written."""
    there = [] if is_own else [name for name in files if (path / name).exists()]
    if there:
        raise ConfigurationError(
            f"{path} has {', '.join(there)}, and no run left it there: choose another --out, or "
            "remove it"
        )
