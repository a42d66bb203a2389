"""Requests from the browser: the address, checks of values and uploads, the language, and the first answer, sent before any job."""
