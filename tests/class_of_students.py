"""A simulated class, for the comparison of submissions: honest students, and copies among them whose share is known.

    python tests/class_of_students.py [STUDENTS] [SEED]

prints for lab 1 how many honest pairs are reported and how many of the copies are found; docs/course-lti.md has the result.
Honest students answer by the lab's reference with their own numbers, round to three to five digits, and make mistakes: the usual ones, slips of
their own, or running everything without their options. Their texts are put together from phrases that many of them use, their programs
are one of four solutions with names and order of their own. Copiers take over numbers (rounded anew or not), texts (with every eighth
word replaced), or a program (everything renamed).
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from retrompi.labs import alike, grade, start, student, text
from retrompi.labs import lab as _lab
from retrompi.labs.alike import Facts
from retrompi.labs.answers import Given
from retrompi.labs.bench import Bench
from retrompi.labs.facts import gather_facts

OPENINGS = (
    "(between|across) (two|the two|my two) machines (every|each) (message|transfer) (pays for|costs|also needs|has to wait for) the (daemon|daemons|routing) (as well|too|on top)",
    "(the start-up|start-up|t0|the latency) (is|becomes|gets|turns) (many times|much|far|considerably) (longer|larger|higher) (over the network|between machines|on the cable|from host to host)",
    "(on one machine|locally|in shared mode) (data|bytes|messages) are (only|just|simply) copied (while|whereas|but) (the network|a remote host|distributed mode) (sends|transmits|moves) them",
    "(a|each|every) (message|packet) (between|to) (machines|another host|the other machine) (passes|crosses|goes through) (two daemons|both daemons|the daemons) and (the wire|a cable|the network card)",
    "(the fixed cost|the cost per message|what a message costs at least) (rises|grows|climbs|goes up) from (some hundred|a few hundred|several hundred) (microseconds|us) to (milliseconds|several milliseconds|a few ms)",
    "(both|the two parts|latency and rate) (suffer|get worse|change for the worse) (when|if|as soon as) (a network|the network|a second machine) (comes in|is involved|is used)",
)
MIDDLES = (
    "(the rate|r|the bandwidth) (falls|drops|shrinks|goes down) by (about|roughly|nearly|almost) (the same|a similar|an equal) (factor|ratio) as (t0|the start-up|the latency) (rises|grows|goes up)",
    "(the product|their product|t0 times r) (therefore|thus|hence|so) (stays|remains|is) (nearly|almost|about) (as it was|the same|unchanged|of the same order)",
    "(N half|the half size|the size at half the rate) is (t0 times the rate|a product|the product of both|start-up times bandwidth) (and|where|so that) one (factor|part|number) (makes up for|cancels|balances|offsets) the other",
    "(what is|whatever is) (lost in|taken from) (rate|bandwidth) is (gained|added|found again) in (start-up|latency|t0) (within|inside|in) the (product|formula)",
    "(half of|50 percent of) (the peak|the best rate|r) is (reached|seen|got) at (about|nearly|roughly) (the same|a similar|one and the same) (size|length)",
    "(N half|this number|that figure) (hides|does not show|says nothing of) (both of its parts|how slow the machine is|the speed itself|how long a message takes)",
)
WANTS = (
    "(I would|one should|I'd like to|a buyer should) (ask for|measure|know|look at) (the start-up|t0|the latency|the time of an empty message)",
    "(before|when) (buying|choosing|deciding) (I need|I want|one needs|we need) (the one-way time|the time|the latency) of (zero bytes|an empty message|the smallest message)",
    "(the vendor|the data sheet|a test) (should|has to|must) (tell|give|show) me (t0|the start-up latency|the time at 0 bytes) (itself|alone|in microseconds)",
    "(more than|rather than|besides) (N half|the half size) (I need|I want|counts|matters) (the latency|t0|the start-up time)",
)
REASONS = (
    "(because|as|since|for) (my messages|messages|transfers) of {each} are (far|much|way) (below|shorter than|under) (that size|N half|the half size)",
    "(because|as|since) {each} (take|need|consist of) (almost|nearly|practically) only (start-up|latency|t0)",
    "(because|since|as) at {each} (the rate|bandwidth|the wire) (hardly|barely|scarcely) (matters|counts|shows)",
    "(for|because) (with|at) {each} the (bytes|data|payload) (cost|weigh|add) (next to nothing|very little|almost nothing)",
)
ADVICE = (
    "(I would|I'd) (tell|advise) her to (keep|stay with) (the wire|her network|the cable) and (combine|pack|join) (messages|several messages|many into one)",
    "(a faster network|ten times the rate|a better wire) (helps|gains|saves|brings) (her|the program) (very little|only a few percent|almost nothing|hardly anything)",
    "(she|the program) (should|could|has to) (send|use|make) (fewer|less but longer|fewer and longer) (messages|packets|transfers)",
    "(she would|you) (pay|spend money) for a (rate|bandwidth|speed) (that she|which she|it) (never|hardly ever) (reaches|uses|sees)",
    "(the daemons|system calls|the library|the software path) (cost|take|need) (the same|as much|just as long) on (any|every|a faster) (wire|network|cable)",
    "(my|our) (factor|ratio|number) for (combining|one long message|packing) (shows|tells|says) (what|how much) (is to be gained|one wins|can be saved)",
    "(the start-up|t0|latency) (of|in) (the line|my line|the fit) (does not|will not|would not) (get shorter|shrink|change) with (the wire|a network|more bandwidth)",
    "(of|out of) (the time|all time|the total) at {each} only a (small|tiny|minor) (part|share|piece) is (transfer|wire|the bytes)",
    "(compare|put|set) t0 (with|against|beside) the (bytes|size) (divided by|over) the rate",
    "(better|shorter|faster) (software|code|drivers) on the path would (help|bring|gain) (her|us|the program) (more|much more|a lot)",
)
LINKS = (", and ", ". ", "; ", ", so ", ". Also ", ", while ", ". In my numbers ", ". I think ")
MEANWHILE = ("really", "quite", "probably", "roughly", "in fact", "as measured", "here", "on my machine", "of course", "clearly", "by my table", "mostly")

DEFAULTS = {"library": "66 us", "copy": "223 MB/s", "daemon": "450 us"}
"""Near the platform's own, which no student draws: what one gets who forgets the options."""


def sentence(rng: random.Random, banks: tuple[tuple[str, ...], ...], each: str) -> str:
    out = ""
    for bank in banks:
        for phrase in rng.sample(bank, rng.choice((1, 1, 2))):
            words = re.sub(r"\(([^)]*)\)", lambda m: rng.choice(m[1].split("|")), phrase).format(each=each).split()
            for _ in range(rng.choice((0, 1, 1, 2))):
                words.insert(rng.randrange(1, len(words)), rng.choice(MEANWHILE))
            out += (rng.choice(LINKS) if out else "") + " ".join(words)
    return out + "."


def program(rng: random.Random, template: str) -> str:
    """One of four solutions of lab 9's ring, with names, order and layout of the student's own."""
    names = {n: rng.choice(c) for n, c in {
        "right": ("right", "next", "dest", "to", "nxt", "r"), "left": ("left", "prev", "src", "from", "l"), "i": ("i", "k", "n", "j", "idx"),
        "bad": ("wrong", "bad", "errors", "count", "miss"), "req": ("req", "requests", "rq", "handles"), "val": ("value", "v", "expect", "should")}.items()}
    r, left, i, bad, req, val = (names[k] for k in ("right", "left", "i", "bad", "req", "val"))
    fill = rng.choice((
        f"for (int {i} = 0; {i} < NUMBERS; {i}++) out[{i}] = 1000 * rank + round;",
        f"double {val} = 1000.0 * rank + round;\n  for (int {i} = 0; {i} < NUMBERS; ++{i})\n    out[{i}] = {val};",
        f"int {i} = 0;\n  while ({i} < NUMBERS) {{ out[{i}] = round + rank * 1000; {i} += 1; }}"))
    who = rng.choice((
        f"int {r} = (rank + 1) % size, {left} = (rank + size - 1) % size;", f"int {r} = rank + 1 == size ? 0 : rank + 1;\n  int {left} = rank == 0 ? size - 1 : rank - 1;",
        f"int {r} = rank + 1;\n  if ({r} == size) {r} = 0;\n  int {left} = rank - 1;\n  if ({left} < 0) {left} = size - 1;"))
    status = rng.choice(("MPI_STATUS_IGNORE", "&status"))
    declare = "MPI_Status status;" if status == "&status" else ""
    send = f"MPI_Send(out, NUMBERS, MPI_DOUBLE, {r}, TAG, MPI_COMM_WORLD);"
    receive = f"MPI_Recv(in, NUMBERS, MPI_DOUBLE, {left}, TAG, MPI_COMM_WORLD, {status});"
    move = rng.choice((
        f"MPI_Sendrecv(out, NUMBERS, MPI_DOUBLE, {r}, TAG, in, NUMBERS, MPI_DOUBLE, {left}, TAG, MPI_COMM_WORLD, {status});",
        f"if (rank % 2) {{\n    {send}\n    {receive}\n  }} else {{\n    {receive}\n    {send}\n  }}",
        f"if (rank == 0) {{ {send} {receive} }}\n  else {{ {receive} {send} }}",
        f"MPI_Request {req};\n  MPI_Irecv(in, NUMBERS, MPI_DOUBLE, {left}, TAG, MPI_COMM_WORLD, &{req});\n  {send}\n  MPI_Wait(&{req}, {status});",
        f"MPI_Request {req}[2];\n  MPI_Isend(out, NUMBERS, MPI_DOUBLE, {r}, TAG, MPI_COMM_WORLD, &{req}[0]);\n  MPI_Irecv(in, NUMBERS, MPI_DOUBLE, {left}, TAG, MPI_COMM_WORLD, {req} + 1);\n"
        f"  MPI_Waitall(2, {req}, MPI_STATUSES_IGNORE);"))
    check = rng.choice((
        f"long {bad} = 0;\n  for (int {i} = 0; {i} < NUMBERS; {i}++) if (in[{i}] != 1000 * {left} + round) {bad}++;\n  return {bad};",
        f"long {bad} = 0;\n  const double want = 1000.0 * {left} + round;\n  for (int {i} = 0; {i} < NUMBERS; {i}++) {bad} += in[{i}] != want;\n  return {bad};",
        f"int {bad} = 0;\n  for (int {i} = NUMBERS - 1; {i} >= 0; {i}--) {{\n    if (in[{i}] == 1000 * {left} + round) continue;\n    {bad}++;\n  }}\n  return {bad};"))
    first = [fill, who]
    rng.shuffle(first)
    extra = rng.choice(("", "if (size < 2) return 0;", "MPI_Barrier(MPI_COMM_WORLD);", "memset(in, 0, NUMBERS * sizeof *in);", "const int many = NUMBERS;", "(void)size;"))
    first.insert(rng.randrange(3), extra)
    body = "\n  ".join([*(["" + declare] if declare else []), *first, move, check])
    for old, new in (
        (r"(\w+)\+\+", (r"\1++", r"++\1", r"\1 += 1", r"\1 = \1 + 1")), (r"1000(\.0)? \* (\w+) \+ round", (r"1000 * \2 + round", r"round + 1000 * \2", r"\2 * 1000.0 + round", r"(1000 * \2 + round)")),
        (r"\b(out|in)\[(\w+)\]", (r"\1[\2]", r"\1[\2]", r"*(\1 + \2)")), (r"\(rank \+ size - 1\)", ("(rank + size - 1)", "(rank - 1 + size)", "(size + rank - 1)")),
        (r"< NUMBERS;", ("< NUMBERS;", "!= NUMBERS;", "<= NUMBERS - 1;")), (r"return (\w+);$", (r"return \1;", r"return (long)\1;")), (r"\blong (\w+) = 0;", (r"long \1 = 0;", r"int \1 = 0;", r"long \1 = 0L, dummy = 0;")),
    ):
        body = re.sub(old, rng.choice(new), body)
    return re.sub(r"/\* Yours\..*?return 0;", lambda _: body, template, flags=re.DOTALL)


def renamed(source: str, rng: random.Random) -> str:
    """A copied program with every name of its own replaced and other comments."""
    body = source[source.index("static long exchange") : source.index("int main")]
    new = body
    for word in sorted(set(re.findall(r"\b[a-z]\w*\b", body)) - {"static", "long", "int", "double", "for", "if", "else", "while", "return", "const", "continue", "exchange", "sizeof", "memset", "void"}):
        new = re.sub(rf"\b{word}\b", f"{rng.choice('abcdefgh')}{rng.randrange(1000)}", new)
    return source.replace(body, new.replace(";", "; /* mine */", 3))


def honest(lab: Any, who: str, rng: random.Random, bench: Bench, template: str) -> Facts:
    p = student.draw(lab, who)
    values, wrongs = grade.right_values(lab, p, bench), grade.usual(lab, p, bench)
    forgot = rng.random() < 0.06
    if forgot:  # every run without the options: the machine as it is, the sizes the student's own
        plain = student.Parameters(dict(p), p.texts)
        for name, written in DEFAULTS.items():
            if name in plain:
                plain[name], plain.texts[name] = lab.parameters[[q.name for q in lab.parameters].index(name)].base(written), written
        values = {**values, **grade.right_values(lab, plain, bench)}
        values |= {t: w["plain-machine"] for t, w in wrongs.items() if "plain-machine" in w}
    sheet: dict[str, Given] = {}
    sealed = {}
    for task in lab.tasks:
        if task.kind == "number":
            value = float(values[task.id])
            slip = rng.random()
            if not forgot and slip < 0.12 and wrongs.get(task.id):
                value = float(rng.choice(list(wrongs[task.id].values())))
            elif slip < 0.2:
                value *= rng.choice((rng.uniform(0.4, 2.5), 1024 / 1000, 2, 0.5))
            shown = float(f"{value:.{rng.choice((2, 3, 3, 4))}e}")
            sheet[task.id] = _number(task, shown)
        elif task.kind == "prediction" and task.number:
            guess = {"s": ("1 ms", "100 us", "2 ms", "10 us", "0.5 ms", "5 ms"), "B": ("1 KiB", "1 kB", "4 KiB", "10 KiB", "64 KiB"), "1": ("2", "1.5", "10", "1")}
            told = rng.choice(guess.get(task.unit, ("1",)))
            sheet[task.id] = Given(told, told)
            sealed[task.id] = student.Sealed(told, 1)
        elif task.kind == "text":
            banks = (OPENINGS, MIDDLES, WANTS, REASONS) if task.id == "explain" else (ADVICE, ADVICE, REASONS, ADVICE)
            told = sentence(rng, banks, p.text("each"))
            sheet[task.id] = Given(told, told)
        else:
            sheet[task.id] = Given("", "")
    state = replace(student.new_state(lab, who), sealed=sealed, token=f"{rng.getrandbits(64):016x}")
    found = gather_facts(lab, state, sheet, {"exchange.c": program(rng, template)}, bench)
    return replace(found, templates={"exchange.c": template})


def _number(task: Any, value: float) -> Given:
    told = start.value_text(task, value).strip('"')
    return Given(told, told)


def copies() -> dict[str, Callable[[Facts, Facts, random.Random], Facts]]:
    """Name -> how a student's facts change by taking something from another's."""

    def numbers(count: int, digits: int | None) -> Callable[[Facts, Facts, random.Random], Facts]:
        def take(mine: Facts, theirs: Facts, rng: random.Random) -> Facts:
            taken = {t: (v if digits is None else float(f"{v:.{digits - 1}e}")) for t, v in rng.sample(sorted(theirs.given.items()), count)}
            return replace(mine, given={**mine.given, **taken})

        return take

    def texts(mine: Facts, theirs: Facts, rng: random.Random) -> Facts:
        out = {}
        for task, told in theirs.texts.items():
            words = told.split()
            for i in range(rng.randrange(8), len(words), 8 + rng.randrange(4)):
                words[i] = rng.choice(("so", "thus", "more", "slow", "big", "it"))
            out[task] = " ".join(words)
        return replace(mine, texts=out)

    return {
        "all numbers": numbers(8, None),
        "five numbers": numbers(5, None),
        "six numbers, rounded to three digits": numbers(6, 3),
        "both texts, every tenth word replaced": texts,
        "one text, word for word": lambda mine, theirs, rng: replace(mine, texts={**mine.texts, "explain": theirs.texts["explain"]}),
        "the program, renamed": lambda mine, theirs, rng: replace(mine, files={n: renamed(t, rng) for n, t in theirs.files.items()}),
        "the folder": lambda mine, theirs, rng: replace(mine, token=theirs.token),
    }


def klass(students: int, seed: int, bench: Bench, name: str = "1", each: int = 4) -> tuple[list[Facts], dict[tuple[int, int], str]]:
    """(the class, (copier, owner) -> what was copied): ``each`` pairs of every kind of copy."""
    rng = random.Random(seed)
    lab = _lab.lab(name)
    ring = _lab.lab("9")
    template = text.rendered_file(next(f for f in ring.files if f.name == "exchange.c").read_text(), ring, student.draw(ring, "x"), "x")
    made = [honest(lab, f"student {i}", rng, bench, template) for i in range(students)]
    planted: dict[tuple[int, int], str] = {}
    free = list(range(students))
    rng.shuffle(free)
    for kind, take in copies().items():
        for _ in range(each):
            copier, owner = free.pop(), free.pop()
            made[copier] = take(made[copier], made[owner], rng)
            planted[copier, owner] = kind
    return made, planted


def measured(made: list[Facts], planted: dict[tuple[int, int], str]) -> tuple[list[alike.SimilarPair], dict[str, list[int]]]:
    """(pairs reported of two who did not copy, kind of copy -> [found, planted])."""
    found = {frozenset((p.one, p.other)): p for p in alike.pairs(made)}
    told: dict[str, list[int]] = {}
    for (copier, owner), kind in planted.items():
        counts = told.setdefault(kind, [0, 0])
        counts[0] += frozenset((copier, owner)) in found
        counts[1] += 1
    # A copier's numbers may be right for a third student as well, who has the parameters of the owner in part: no honest pair.
    copiers = {copier for copier, _ in planted}
    return [p for k, p in found.items() if not k & copiers], told


if __name__ == "__main__":
    from retrompi.store import open_store

    students, seed = (int(x) for x in (sys.argv[1:] + ["200", "1"][len(sys.argv) - 1 :])[:2])
    false, told = measured(*klass(students, seed, Bench(open_store("class.db"))))
    for kind, (found, planted) in told.items():
        print(f"{kind}: {found} of {planted}")
    print(f"false pairs: {len(false)} of {students * (students - 1) // 2}")
    for pair in false[:10]:
        print("  ", pair.one, pair.other, f"{pair.weight:.1f}", pair.why)
