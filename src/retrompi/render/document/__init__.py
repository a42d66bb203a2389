"""Building blocks of pages: the HTML frame and style, embedded figures, texts of scripts, and export of images."""
