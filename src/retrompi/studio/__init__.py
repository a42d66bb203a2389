"""The studio: a local application in the browser (Dash), started by ``retrompi studio``.

        app.py        create_app(resources): layout, navigation, state in the URL
        serve.py      the server; preload.py: what the process loads from which jobs are forked
        jobs/         work in separate processes: progress, cancelling, limits; what the pages share (resources.py)
        requests/     checks of requests and values, controls <-> query string, headers, the first answer;
                      page.py: definition of a page
        components/   labelled controls, notices, job bars, tables, menus, titles, sliders' parameters
        curves/       PingPongs: their jobs, intervals, uploaded curves, figures
        anatomy/      one message, one program: their jobs, and a path as words, diagram and animation
        cards/        models, platforms, statements and studies as cards and tables
        labs/         a lab: text, forms, checks, programs, session, slides
        pages/        the pages, one file each, found by listing the folder

    A folder imports only those above it in this list. Nothing is imported here before it is used: importing Dash takes noticeable time.
"""
