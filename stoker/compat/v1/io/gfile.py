"""Public names of tf.io.gfile."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.formats.gfile import copy as copy
from stoker._src.formats.gfile import exists as exists
from stoker._src.formats.gfile import get_registered_schemes as get_registered_schemes
from stoker._src.formats.gfile import GFile as GFile
from stoker._src.formats.gfile import glob as glob
from stoker._src.formats.gfile import isdir as isdir
from stoker._src.formats.gfile import join as join
from stoker._src.formats.gfile import listdir as listdir
from stoker._src.formats.gfile import makedirs as makedirs
from stoker._src.formats.gfile import mkdir as mkdir
from stoker._src.formats.gfile import remove as remove
from stoker._src.formats.gfile import rename as rename
from stoker._src.formats.gfile import rmtree as rmtree
from stoker._src.formats.gfile import stat as stat
from stoker._src.formats.gfile import walk as walk
