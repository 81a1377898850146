"""Import and export of graphs: GraphDefs, function libraries, meta graphs, compatibility between versions, and conversion of control flow."""
