"""Measurements on real machines: recording and launching programs, measuring this machine, fitting curves and comparing."""
