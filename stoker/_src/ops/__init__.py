"""Op definitions by family. Importing this package defines every op; it knows no Session."""

from stoker._src.base import loading

loading.load()
