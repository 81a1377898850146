"""Graphs and op definitions: nodes, names, scopes, static shapes, GraphDef. Knows no torch and no Session."""
