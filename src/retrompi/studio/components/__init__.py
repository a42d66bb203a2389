"""What pages are made of: labelled controls, tables, the bar of a job, menus, titles, sliders' parameters, timelines in frames."""
