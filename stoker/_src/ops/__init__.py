"""Op definitions by family. Importing this package defines every op; it knows no Session."""

from stoker import _src

_src.load()
