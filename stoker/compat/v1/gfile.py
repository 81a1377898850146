"""Public names of tf.gfile."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.formats.gfile import Copy as Copy
from stoker._src.formats.gfile import DeleteRecursively as DeleteRecursively
from stoker._src.formats.gfile import Exists as Exists
from stoker._src.formats.gfile import GFile as GFile
from stoker._src.formats.gfile import GFile as Open
from stoker._src.formats.gfile import Glob as Glob
from stoker._src.formats.gfile import IsDirectory as IsDirectory
from stoker._src.formats.gfile import ListDirectory as ListDirectory
from stoker._src.formats.gfile import MakeDirs as MakeDirs
from stoker._src.formats.gfile import MkDir as MkDir
from stoker._src.formats.gfile import Remove as Remove
from stoker._src.formats.gfile import Rename as Rename
from stoker._src.formats.gfile import Stat as Stat
from stoker._src.formats.gfile import Walk as Walk
from stoker._src.formats.public import FastGFile as FastGFile
