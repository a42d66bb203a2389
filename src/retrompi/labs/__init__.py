"""Teaching labs: a text with tasks, numbers of every student's own, predictions first, checks that do not give the answer away.

    lab.py       what a lab is: lab.toml, text.md and reference.py of a folder in labs/
    student.py   a student's seed and parameters, the folder that `lab start` makes, sealed predictions and taken hints
    bench.py     what reference.py simulates with: curves and anatomies that the store keeps
    answers.py   what a student wrote: answers.toml, values with units
    grade.py     right or wrong, and what a wrong value usually means
    report.py    the page of a submission
    collect.py   a class's submissions: grade table, and which are alike
"""
