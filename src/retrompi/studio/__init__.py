"""The studio: a local application in the browser (Dash), started by ``retrompi studio``.

        app.py      create_app(resources): layout, navigation, state in the URL
        page.py     definition of a page; each file in pages/ is one, found by listing that folder
        state.py    controls <-> query string
        resources.py  shared by the pages: store, jobs
        limits.py   limits per studio and session
        jobs.py     work in separate processes: progress, cancelling, limits
        turns.py    which jobs begin, run and pause: fair between clients and sessions
        parts.py    page components: labelled controls, notices, job bars, tables
        entries.py  wrong entries, told beside their controls
        homes.py    the platform follows the runtime
        guard.py    checks of requests, and headers of every response
        inputs.py   checks of the values that callbacks take
        serve.py    the server; connections.py: limits on its connections

    Nothing is imported here before it is used: importing Dash takes noticeable time.
"""
