"""Jobs of the pages in separate processes, which can be ended: progress, cancelling, and fair scheduling between sessions.

    id = jobs.submit(session, "PingPong of WMPI", function, *args)     # function(report, *args) runs in another process
        jobs.wait(id, session, 0.3)                                        # its state, as soon as it ends or after 0.3 s
    jobs.cancel(id, session)

A server process (multiprocessing's fork server) has all imports done; each job is a fork of it, available within milliseconds.
``function`` is a module-level function, its arguments can be pickled, its result is JSON (numbers, texts, lists, dicts with text keys):
output of a process that read an untrusted file is never unpickled. Which jobs begin, run and pause: `retrompi.studio.jobs.fair_turns`.

Whatever a result changes outside of its page, in a store or a course, belongs into ``then`` of `Jobs.submit`: the studio calls it, once,
whether or not a page still asks. A page only shows.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import secrets
import signal
import sys
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Any

from retrompi.base import translate
from retrompi.base.errors import EngineError, RetrompiError, UsageError
from retrompi.base.translate import _
from retrompi.base.units import format_bytes
from retrompi.sim.processes import how_ended, kill_group
from retrompi.studio.jobs import child_process, process_control
from retrompi.studio.jobs.fair_turns import FIRST_S, JobShare, Turns
from retrompi.studio.jobs.job import ENDED, Allowance, JobState, StudioJob, Then
from retrompi.studio.jobs.limits import Limits

__all__ = ["Jobs"]

log = logging.getLogger("retrompi.studio")

_PRELOAD = "retrompi.studio.preload"
_TICK_S = 0.1
"""Interval of decisions while jobs compete."""
_MEMORY_S = 1.0
"""Interval of looking at the memory of all jobs."""
_KEEPING = 2
"""Threads for what is done with results: they wait for a database, not for a processor."""


def _started_by() -> list[str]:
    """Modules of ours used by the running program: every job's process imports that program, so they are preloaded."""
    mine = (getattr(value, "__module__", None) for value in vars(sys.modules["__main__"]).values())
    return sorted({name for name in mine if isinstance(name, str) and name.startswith("retrompi.")})


class Jobs:
    """The jobs of one studio. Thread-safe; `close` ends everything."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.account: Allowance | None = None
        """Set where sessions have quotas."""
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([_PRELOAD, *_started_by()])
        self._changed = threading.Condition()
        self._jobs: dict[str, StudioJob] = {}
        self._turns = Turns(self.limits.running, self.limits.long, self.limits.begun, self.limits.running_a_session)
        self._open: dict[str, StudioJob] = {}
        """Those that are not finished."""
        self._order: dict[int, int] | None = None
        """The positions of waiting jobs by number of arrival; None: to be determined."""
        self._arrived = 0
        self._looked = 0.0
        self._kept: OrderedDict[str, deque[str]] = OrderedDict()
        self._size_B = 0
        self._closed = False
        self._keepers = ThreadPoolExecutor(_KEEPING, thread_name_prefix="studio results")
        self._bell, self._ear = self._context.Pipe(duplex=False)[::-1]
        self._thread = threading.Thread(target=self._manage, name="studio jobs", daemon=True)
        self._thread.start()

    # -- used by pages -------------------------------------------------------------------------------------------------

    def submit(
        self,
        session: str,
        title: str,
        function: Callable[..., Any],
        *args: Any,
        slot: str = "",
        seconds: float | None = None,
        memory_B: int | None = None,
        question: str = "",
        client: str = "",
        payer: str = "",
        then: Then | None = None,
        stays: bool = False,
    ) -> str:
        """Submit a job and return its id. A running job of the same session in the same ``slot`` is cancelled, as this one replaces it,
        unless it ``stays``.

        ``seconds`` and ``memory_B`` may lower the limits; ``question`` is the key for `newest`; ``client`` is the address that the session
        has; ``payer`` the session whose account pays, if another one. Raises UsageError when the session, or all sessions together, have
        too many jobs.

        ``then`` is called once with the job's last state, whatever became of it, unless the studio is closed under it. Until ``then`` has
        returned the job has not ended for whoever asks; what it raises is the job's failure.
        """
        job = StudioJob(
            secrets.token_urlsafe(12), session, title, slot, (function, args), min(seconds or self.limits.job_s, self.limits.job_s),
            min(memory_B or self.limits.job_B, self.limits.job_B), JobShare(session, client, 0), question,
            payer=payer or session, then=then, stays=stays,
        )
        self._take(job)
        return job.id

    def _take(self, job: StudioJob) -> None:
        """Puts a new job into the queue. Raises UsageError if it is refused."""
        limits, session, slot = self.limits, job.session, job.slot
        if self.account is not None:
            self.account.ask(job.payer)
        with self._changed:  # two requests at once must not get one number
            self._arrived += 1
            job.share.number = self._arrived
        with self._changed:
            if self._closed:
                raise UsageError("this studio is ending", code="jobs-refused")
            for other in list(self._open.values()):
                if slot and other.session == session and other.asks(slot) is not None and not other.stays:
                    self._end(other, "cancelled")
            mine = sum(j.session == session for j in self._open.values())
            if mine >= limits.jobs_a_session:
                raise UsageError(f"{mine} of your jobs are waiting or running; cancel one, or wait", code="jobs-refused")
            if len(self._open) >= limits.jobs and not self._displace_for(job):
                raise UsageError(f"{limits.jobs} jobs are waiting or running; try again later", code="jobs-refused")
            self._jobs[job.id] = self._open[job.id] = job
            self._order = None
            self._ring()

    def state(self, job_id: str, session: str) -> JobState:
        """The job's state. Raises UsageError for a job that does not exist or belongs to another session."""
        with self._changed:
            return self._state(self._mine(job_id, session))

    def wait(self, job_id: str, session: str, seconds: float) -> JobState:
        """Its state once it has ended, or after ``seconds``."""
        until = time.monotonic() + seconds
        with self._changed:
            job = self._mine(job_id, session)
            while job.status not in ENDED and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            return self._state(job)

    def newest(self, session: str, slot: str, question: str, seconds: float) -> str | None:
        """The id of the job submitted last in a session's slot, if it is still known; waits up to ``seconds`` for one with this
        question."""
        until = time.monotonic() + seconds
        with self._changed:
            while True:
                job = next((j for j in reversed(self._jobs.values()) if j.session == session and j.asks(slot) is not None), None)
                left = until - time.monotonic()
                if job is None or job.asks(slot) == question or left <= 0:
                    return job.id if job else None
                self._changed.wait(min(left, 0.05))

    def take_up(self, session: str, page: str, slot: str, question: str) -> str | None:
        """The id of the newest unfinished job of a session, in any slot that begins with ``page`` and a space; None if there is none.

        From then on it also belongs to ``slot``, identified there by ``question``: a reloaded page finds the job it started.
        """
        with self._changed:
            for job in reversed(self._jobs.values()):
                if job.status not in ENDED and job.session == session and job.slot.startswith(f"{page} "):
                    job.also[slot] = question
                    return job.id
        return None

    def cancel(self, job_id: str, session: str) -> None:
        """Ends its process immediately. Raises UsageError as `state`."""
        with self._changed:
            job = self._mine(job_id, session)
            if job.id in self._open:
                self._end(job, "cancelled")
                self._ring()

    def leave(self, session: str, slot: str) -> None:
        """Ends the unfinished jobs of a session's slot: nothing is asked there any more."""
        with self._changed:
            for job in list(self._open.values()):
                if job.session == session and job.slot == slot and not job.stays:
                    self._end(job, "cancelled")
                    self._ring()

    def warm(self) -> None:
        """Starts the server process in advance, so that the first job need not wait for it."""
        from multiprocessing import forkserver

        forkserver.ensure_running()

    def close(self) -> None:
        """Ends every job and the thread that manages them; what is being recorded is recorded."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            for job in list(self._open.values()):
                self._end(job, "cancelled")
            self._ring()
        self._thread.join(5)
        self._keepers.shutdown()

    # -- inside --------------------------------------------------------------------------------------------------------

    def _mine(self, job_id: str, session: str) -> StudioJob:
        job = self._jobs.get(job_id)
        if job is None or not secrets.compare_digest(job.session.encode(), session.encode()):
            raise UsageError("no such job: it ended long ago, or belongs to another session", code="gone")
        if session in self._kept:
            self._kept.move_to_end(session)
        return job

    def _state(self, job: StudioJob) -> JobState:
        share = job.share
        took = share.running_time(time.monotonic()) if job.id in self._open else job.took
        begun = sum(j.share.alive for j in self._open.values())
        own = job.status == "queued" and self._alive(job.session) >= self.limits.running_a_session
        return JobState(job.id, job.title, job.status, *job.told, result=job.result, error=job.error, ahead=self._ahead(job),
                        running=begun, own=own, paused=share.alive and share.paused, seconds=took)

    def _alive(self, session: str) -> int:
        return sum(j.share.alive and j.session == session for j in self._open.values())

    def _ahead(self, job: StudioJob) -> int:
        """The number of waiting jobs that begin before a waiting one."""
        if job.status != "queued":
            return 0
        if self._order is None:
            shares = [j.share for j in self._open.values()]
            self._order = {s.number: i for i, s in enumerate(self._turns.queue(shares))}
        return self._order.get(job.share.number, 0)

    def _displace_for(self, job: StudioJob) -> bool:
        """Whether a waiting job of a client or a session with more jobs was given up for a new one, when there are too many in all."""
        for what in ("client", "session"):
            many = Counter(str(getattr(j.share, what)) for j in self._open.values())
            greedy, most = many.most_common(1)[0]
            waiting = [j for j in self._open.values() if getattr(j.share, what) == greedy and j.status == "queued"]
            if waiting and most > many[getattr(job.share, what)] + 1:
                self._end(waiting[-1], "failed", f"given up: {self.limits.jobs} jobs were waiting or running, and most of them were yours")
                return True
        return False

    def _ring(self) -> None:
        with suppress(OSError):
            self._bell.send_bytes(b"!")

    def _decide(self) -> list[StudioJob]:
        """Pauses, resumes and displaces jobs; returns those to begin."""
        if self._closed:
            return []
        now = time.monotonic()
        of = {id(j.share): j for j in self._open.values()}
        held = [j.share for j in self._open.values() if j.process is None or not j.now.value]
        plan = self._turns.plan([j.share for j in self._open.values()], now, held)
        for share in plan.displace:
            self._displace(of[id(share)])
        for share in plan.pause:
            job = of[id(share)]
            if process_control.pause(job.process.pid, lambda job=job: bool(job.now.value)):  # type: ignore[misc]
                share.before_s, share.since, share.paused = share.running_time(now), now, True
        for share in plan.resume:
            process_control.resume(of[id(share)].process.pid)
            share.since, share.paused = now, False
        for job in self._open.values():
            if not job.low and job.process is not None and job.share.long(now):
                job.low = True
                process_control.lower(job.process.pid)
        if now - self._looked > _MEMORY_S:
            self._looked = now
            self._look_at_memory()
        begin = [of[id(share)] for share in plan.begin]
        for job in begin:
            self._turns.began(job.share)
            job.status = "running"
            job.share.alive, job.share.since = True, now
        if begin or plan.displace:
            self._order = None
        return begin

    def _look_at_memory(self) -> None:
        """Ends the largest job of the session with the most memory if all jobs together have too much."""
        jobs = {j.process.pid: j for j in self._open.values() if j.process is not None and j.share.long(self._looked)}
        held = process_control.private_B(jobs)
        whole, most = sum(held.values()), self.limits.memory_B
        if whole <= most:
            return
        by_session: dict[str, int] = {}
        for pid, job in jobs.items():
            by_session[job.session] = by_session.get(job.session, 0) + held[pid]
        session = max(by_session, key=lambda s: by_session[s])
        pid = max((p for p, j in jobs.items() if j.session == session), key=lambda p: held[p])
        self._end(jobs[pid], "failed", f"ended because it held {format_bytes(held[pid])}, and all jobs of this studio together more than "
                  f"the {format_bytes(most)} that they may")

    def _displace(self, job: StudioJob) -> None:
        """Ends a job's process; the job waits for a place to start again."""
        self._kill(job)
        job.status, job.told, job.low = "queued", (0, 0, ""), False
        share = job.share
        share.alive = share.paused = False
        share.again, share.before_s = True, 0.0

    def _begin(self, job: StudioJob) -> None:
        """Starts a job's process. Called without the lock: the first job has to wait for the server process."""
        function, args = job.work
        error = ""
        ours: Connection | None = None
        process: Any = None
        try:
            ours, theirs = self._context.Pipe(duplex=False)
            with theirs:
                job.now = self._context.RawValue("b", 0)
                allowed = child_process.Allowed(job.memory_B, self.limits.result_B, self.limits.bounds, job.language)
                work = (theirs, job.now, allowed, function, args)
                process = self._context.Process(target=child_process.run, args=work, daemon=True)
                process.start()
        except Exception as problem:  # including too many open files: this thread must survive
            error = f"its process cannot be started: {type(problem).__name__}: {problem}"
        with self._changed:
            job.line = ours
            if not error:
                job.process = process
            if job.status != "running":  # cancelled in the meantime
                self._kill(job)
            elif error:
                self._end(job, "failed", error)

    def _kill(self, job: StudioJob) -> None:
        """Ends a job's process, if it has one."""
        if job.process is not None:
            job.cpu_s += process_control.cpu_s(job.process.pid)  # also of one that has ended and was not waited for
            kill_group(job.process.pid)
            job.process.kill()
            job.process.join(5)
            with suppress(ValueError):  # a killed process that has not terminated yet
                job.process.close()
            job.process = None
        if job.line is not None:
            job.line.close()
            job.line = None

    def _end(self, job: StudioJob, status: str, error: str = "") -> None:
        """Ends an unfinished job and its process."""
        self._kill(job)
        job.took = job.share.running_time(time.monotonic())
        job.share.alive = False
        if self._open.pop(job.id, None) is not None:
            self._order = None
            if self.account is not None:
                self.account.pay(job.payer, job.cpu_s)
        then, job.then = job.then, None
        if then is None or self._closed:
            self._finish(job, status, error)
        else:
            job.status = "keeping"
            self._keepers.submit(self._keep, job, then, status, error)

    def _keep(self, job: StudioJob, then: Then, status: str, error: str) -> None:
        """Does with an ended job what has to be done with it, and only then ends it for whoever asks. Runs without the lock."""
        with self._changed:
            state = replace(self._state(job), status=status, error=error)
        with translate.speaking(job.language):
            try:
                then(state)
            except RetrompiError as problem:
                status, error = "failed", " ".join(str(problem).split())
            except Exception as problem:
                log.error("what came out of '%s' was not recorded", job.title, exc_info=problem)
                line = _("internal error: {name}; see the terminal of 'retrompi studio' for details")
                status, error = "failed", line.format(name=type(problem).__name__)
        with self._changed:
            self._finish(job, status, error)

    def _finish(self, job: StudioJob, status: str, error: str) -> None:
        """The job's last state is there for whoever asks."""
        job.status, job.error = status, error
        self._forget(job)
        self._changed.notify_all()

    def _forget(self, ended: StudioJob) -> None:
        """Keeps the newest finished jobs of a session, and the recently active sessions."""
        kept = self._kept.setdefault(ended.session, deque())
        self._kept.move_to_end(ended.session)
        if ended.id in kept:
            return
        kept.append(ended.id)
        while len(kept) > self.limits.kept:
            self._drop(kept.popleft())
        self._size_B += ended.size_B
        while self._kept and (len(self._kept) > self.limits.sessions or self._size_B > self.limits.kept_B):
            session, theirs = next(iter(self._kept.items()))
            if theirs[0] == ended.id:
                break
            self._drop(theirs.popleft())
            if not theirs:
                del self._kept[session]

    def _drop(self, job_id: str) -> None:
        job = self._jobs.pop(job_id, None)
        self._size_B -= job.size_B if job is not None else 0

    def _manage(self) -> None:
        """The thread that begins, pauses and resumes jobs, receives their messages and ends those that take too long."""
        while True:
            with self._changed:
                begin = self._decide()
            for job in begin:
                self._begin(job)
            with self._changed:
                if self._closed:
                    return
                lines = {j.line: j for j in self._open.values() if j.line is not None}
                patience = self._patience()
            try:
                ready = wait([self._ear, *lines], patience)
            except OSError:  # a connection that was closed in the meantime
                continue
            with self._changed:
                if self._ear in ready:
                    with suppress(OSError, EOFError):
                        self._ear.recv_bytes()
                for line in ready:
                    speaker = lines.get(line)  # type: ignore[call-overload]
                    if speaker is not None and speaker.line is line:
                        self._hear(speaker)
                now = time.monotonic()
                for running in list(self._open.values()):
                    if running.share.alive and running.share.running_time(now) > running.seconds:
                        self._end(running, "failed", f"ended after {running.seconds:g} s, the longest a job may take here")

    def _patience(self) -> float:
        """Seconds until the next decision, if nothing happens before."""
        now = time.monotonic()
        alive = [j for j in self._open.values() if j.share.alive]
        if len(alive) < len(self._open) or sum(j.share.long(now) for j in alive) > self.limits.long:
            return _TICK_S
        left = [j.seconds - j.share.running_time(now) for j in alive]
        left += [FIRST_S - j.share.running_time(now) for j in alive if not j.share.long(now)]
        return max(min([*left, _MEMORY_S if alive else 60.0]), 0.0)

    def _hear(self, job: StudioJob) -> None:
        assert job.line is not None
        try:
            data = job.line.recv_bytes(self.limits.result_B + 4096)
            said = json.loads(data)
            told = (int(said["done"]), int(said["total"]), str(said["what"])) if said["kind"] == "report" else None
        except (EOFError, OSError, ValueError, TypeError, KeyError, RecursionError):  # invalid data after reading an untrusted file
            job.process.join(5)
            self._end(job, "failed", _last_words(job.process.exitcode))
            return
        if told is not None:
            job.told = told
            self._changed.notify_all()
        elif said["kind"] == "done":
            job.result, job.size_B = said.get("result"), len(data)
            self._end(job, "done")
        else:
            self._end(job, "failed", str(said.get("error")))


def _last_words(code: int | None) -> str:
    if code is None:
        return str(EngineError("the job's process says nothing any more"))
    if code == -signal.SIGXCPU:
        return "took more processor time than reading an upload may"
    return f"the job's process died ({how_ended(code)}): too little memory, or a defect of ours"
