"""The studio: a local application in the browser (Dash), started by ``retrompi studio``.

    app.py      create_app(room): layout, navigation, state in the URL
    page.py     what a page is; a page is a file in pages/, found by listing that folder
    state.py    controls <-> query string
    room.py     what pages share: store, jobs
    limits.py   what anybody may ask of a studio
    jobs.py     work in processes of its own: progress, cancelling, fair between sessions
    parts.py    pieces of pages: labelled controls, notices, job bars, tables
    guard.py    what a request may be, and what every answer carries
    serve.py    the server

Nothing here is imported until it is used: Dash takes a noticeable time to import.
"""
