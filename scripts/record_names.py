"""Records the public names in tests/data/public_names.txt, which a test compares with what is there."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from api_gen import load_exports  # noqa: E402


def main() -> None:
    sys.path.insert(0, str(ROOT))
    names = sorted(f"{namespace} {name}" for namespace, table in load_exports().items() for name in table)
    path = ROOT / "tests" / "data" / "public_names.txt"
    path.write_text("\n".join(names) + "\n")
    print(f"{len(names)} names")


if __name__ == "__main__":
    main()
