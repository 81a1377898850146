"""Ops on the shape and the place of elements: constants, reshaping, joining, slicing, gathering, scattering."""
