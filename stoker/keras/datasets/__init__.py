"""Public names of tf.keras.datasets."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.keras.datasets import boston_housing as boston_housing
from stoker.keras.datasets import cifar10 as cifar10
from stoker.keras.datasets import cifar100 as cifar100
from stoker.keras.datasets import fashion_mnist as fashion_mnist
from stoker.keras.datasets import imdb as imdb
from stoker.keras.datasets import mnist as mnist
from stoker.keras.datasets import reuters as reuters
