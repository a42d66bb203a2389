"""Building blocks of the pages: labelled controls, tables, progress bars of jobs, menus, titles, sliders, timelines."""
