"""Measuring this machine: two ranks of an MPI, the host beneath them, and the model and platform fitted to the measurements.

found = plan.measure(bench, quick=True)       # a `Recording`: every number the fit needs
fitted = fit_recording.fit(found)                  # thresholds, segments, overheads; held-out sizes judged
fit_recording.write(fitted, folder, platform_file)
"""
