"""What-if studies: a scenario, the axes along which it varies, and the results.

    study = design.from_command("bf-wmpi-shared", vary={"wmpi.packet": "64KiB..2MiB:x2"})
    run = run_study(open_store(), study, executor=Pool())
    rows(open_store(), run.study_id)

        define/    what a point is: scenario, keys, ranges, axes, metrics
        draws/     the uncertain numbers of a run, and ensembles of draws
        execute/   the design of a study, its plan, and executors
        read/      a stored study as rows, views and tables
        search/    break-even, tolerance, sensitivity, optima, and their certainty
        archive/   export, packed studies, merged stores
        compare/   runtimes on one program; jobs beside each other; two runs

    A folder imports only those above it in this list.
"""
