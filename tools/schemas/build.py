"""Builds the data files of ``kubescene.api`` from published packages.

    python -m venv SOURCES
    SOURCES/bin/pip install kubernetes-validate==1.37.0 lightkube-models==1.36.3.8
    python -m tools.schemas.build SOURCES/lib/python3.11/site-packages

The same packages give the same bytes. Nothing of them is imported, and neither is needed to run
Kubescene.
"""

import argparse
import json
import zlib
from pathlib import Path
from typing import Any

from tools.schemas.definitions import definitions
from tools.schemas.fieldtables import field_tables
from tools.schemas.kinds import built_in_kinds

VERSION = "v1.36.0"
DATA = Path(__file__).parents[2] / "src" / "kubescene" / "api" / "data"


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the data files of kubescene.api.")
    parser.add_argument("site_packages", type=Path, help="where the source packages are installed")
    parser.add_argument("--out", type=Path, default=DATA, help="folder to write to")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    schemas = definitions(arguments.site_packages, VERSION)
    write_lines(arguments.out / "kinds.json", built_in_kinds(arguments.site_packages))
    write_compressed(arguments.out / "schemas.json.z", schemas)
    write_compressed(arguments.out / "fields.json.z", field_tables(schemas))


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    """A JSON array with one row a line, so that a change of one kind is a change of one line."""
    lines = ",\n".join(_compact(row) for row in rows)
    path.write_text(f"[\n{lines}\n]\n")


def write_compressed(path: Path, value: Any) -> None:
    path.write_bytes(zlib.compress(_compact(value).encode(), 9))


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


if __name__ == "__main__":
    main()
