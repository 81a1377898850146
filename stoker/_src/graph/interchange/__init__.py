"""Graphs in and out: GraphDef, function libraries, meta graphs, other versions, control flow raised and lowered."""
