"""Teaching labs: a text with tasks, parameters of each student's own, predictions first, and checks that do not reveal the answer.

    lab.py       definition of a lab: lab.toml, text.md and reference.py of a folder in labs/
    work.py      a student's work, immutable, and what is done with it: answer, seal, check, hint
    shelf.py     works kept as folders, and packed as zips
    student.py   a student's seed and parameters, the folder made by `lab start`, sealed predictions and used hints
    bench.py     simulations for reference.py: curves and anatomies, kept in the store
    alike.py     similar submissions, with reasons; chance.py: how likely two write the same by chance
    answers.py   the student's answers: answers.toml, values with units
    grade.py     grading, and diagnosis of wrong values
    report.py    the report page of a submission
    collect.py   a class's submissions: grade table and similarities
"""
