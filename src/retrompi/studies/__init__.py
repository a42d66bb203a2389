"""What-if studies: a scenario, its axes, and the results (docs/studies.md).

    study = design.from_command("bf-wmpi-shared", vary={"wmpi.packet": "64KiB..2MiB:x2"})
    run = run_study(open_store(), study, executor=Pool())
    rows(open_store(), run.study_id)
"""
