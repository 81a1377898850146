"""Public names of tf.contrib.image."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.image import angles_to_projective_transforms as angles_to_projective_transforms
from stoker._src.contrib.image import compose_transforms as compose_transforms
from stoker._src.contrib.image import dense_image_warp as dense_image_warp
from stoker._src.contrib.image import flat_transforms_to_matrices as flat_transforms_to_matrices
from stoker._src.contrib.image import matrices_to_flat_transforms as matrices_to_flat_transforms
from stoker._src.contrib.image import rotate as rotate
from stoker._src.contrib.image import transform as transform
from stoker._src.contrib.image import translate as translate
from stoker._src.contrib.image import translations_to_projective_transforms as translations_to_projective_transforms
