"""What pages are made of: the frame, style and pieces of HTML, figures in one file, words of scripts, and images."""
