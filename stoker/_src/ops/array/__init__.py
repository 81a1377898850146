"""Array ops: constants, reshaping, joining, slicing, gathering and scattering."""
