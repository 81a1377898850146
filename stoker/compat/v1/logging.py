"""Public names of tf.logging."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.base.tf_logging import DEBUG as DEBUG
from stoker._src.base.tf_logging import debug as debug
from stoker._src.base.tf_logging import ERROR as ERROR
from stoker._src.base.tf_logging import error as error
from stoker._src.base.tf_logging import FATAL as FATAL
from stoker._src.base.tf_logging import fatal as fatal
from stoker._src.base.tf_logging import flush as flush
from stoker._src.base.tf_logging import get_verbosity as get_verbosity
from stoker._src.base.tf_logging import INFO as INFO
from stoker._src.base.tf_logging import info as info
from stoker._src.base.tf_logging import log as log
from stoker._src.base.tf_logging import log_every_n as log_every_n
from stoker._src.base.tf_logging import log_first_n as log_first_n
from stoker._src.base.tf_logging import log_if as log_if
from stoker._src.base.tf_logging import set_verbosity as set_verbosity
from stoker._src.base.tf_logging import TaskLevelStatusMessage as TaskLevelStatusMessage
from stoker._src.base.tf_logging import vlog as vlog
from stoker._src.base.tf_logging import WARN as WARN
from stoker._src.base.tf_logging import warning as warn
from stoker._src.base.tf_logging import warning as warning
