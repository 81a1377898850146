"""Public names of tf.keras.datasets."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v2.keras.datasets import boston_housing as boston_housing
from stoker.compat.v2.keras.datasets import cifar10 as cifar10
from stoker.compat.v2.keras.datasets import cifar100 as cifar100
from stoker.compat.v2.keras.datasets import fashion_mnist as fashion_mnist
from stoker.compat.v2.keras.datasets import imdb as imdb
from stoker.compat.v2.keras.datasets import mnist as mnist
from stoker.compat.v2.keras.datasets import reuters as reuters
