"""A paper's folder as it is read: claims, curves with their points, figures and tables, sources and systems, code of its own."""
