"""Graphs and op definitions: nodes, names, scopes, static shapes, GraphDef. This room does not depend on torch or sessions."""
