"""Public names of tf.resource_loader."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.base.app import get_data_files_path as get_data_files_path
from stoker._src.base.app import get_path_to_datafile as get_path_to_datafile
from stoker._src.base.app import get_root_dir_with_all_resources as get_root_dir_with_all_resources
from stoker._src.base.app import load_resource as load_resource
from stoker._src.base.app import readahead_file_path as readahead_file_path
