"""All benchmarks, one after the other; each prints its figures beside the floor it has to reach."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    scripts = sorted(path for path in HERE.glob("*.py") if path.name != Path(__file__).name)
    codes = []
    for script in scripts:
        print(f"\n== {script.stem} ==", flush=True)
        codes.append(subprocess.run([sys.executable, str(script)], check=False).returncode)
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main())
