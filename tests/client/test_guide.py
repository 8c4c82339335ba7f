"""The guide's program does what the guide says."""

import contextlib
import io
import re
from pathlib import Path

import pytest
import yaml

from client.worlds import HttpWorld
from kubescene.client.http.kubeconfigs import make_kubeconfig

GUIDE = Path(__file__).parents[2] / "docs/guides/http-client.md"


def test_the_guides_program_prints_what_it_says(
    served: HttpWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "replicaset.yaml"
    file.write_text(yaml.safe_dump(make_kubeconfig(served.server.url, as_user="replicaset")))
    monkeypatch.setenv("KUBECONFIG", str(file))
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(GUIDE), "exec"), {})
    assert f"It prints `{printed.getvalue().strip()}`." in GUIDE.read_text()
