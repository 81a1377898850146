"""Everything behind the public names. A room imports only from rooms above it: see ARCHITECTURE.md."""
