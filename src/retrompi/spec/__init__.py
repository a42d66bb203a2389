"""The typed and validated input of a simulation: platforms, channels, parameters of models, cross traffic and further jobs.

The modules at the top are those that models, also those of users, and questions are written with: they stay where they are.

        declare/      fields, calls, results, numbers, parameters: declared once, and much is made from them
        machine/      platforms out of files: links, the library, placements, kernels
        runtime/      what is said of a runtime: overrides, origins, legends, where it can run
        compiled/     what the engine is handed: generated structs, compiled parameters
        conditions/   what a run has beside: bounds, further jobs, traffic, a timed section

A folder imports of the others only those above it in this list; any of them may import the modules at the top.
"""
