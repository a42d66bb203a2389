"""PingPong curves on the pages: the jobs that simulate them and their intervals, uploaded curves, and the figures."""
