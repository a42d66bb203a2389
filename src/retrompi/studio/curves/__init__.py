"""PingPongs for the pages: the jobs that simulate curves and their intervals, uploaded curves, and the figures."""
