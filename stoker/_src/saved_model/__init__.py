"""SavedModels: graphs with their variables, assets and signatures in a directory of their own."""
