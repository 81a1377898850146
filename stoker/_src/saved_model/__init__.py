"""SavedModels: graphs or objects with their variables, assets and signatures, in one directory."""
