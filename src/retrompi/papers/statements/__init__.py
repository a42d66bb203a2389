"""Reading a paper's folder: claims, measured curves, figures and tables, sources and systems, and the folder's own code."""
