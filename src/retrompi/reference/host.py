"""A host: who runs on which processor, for how long, and what interrupts.

A process is a generator. It acts in no time at all; when it needs a processor (`Thread.run`), waits (`Thread.wait`) or sleeps
(`Thread.sleep`) it says so and yields. It acts again only while it holds a processor.

The rules of the scheduler are those of Windows NT, and those of a Unix with other numbers (sources: E-NT-* on the page *Sources*, which is
validate/reference/hardware.csv; each number stands with its source in the platform's file):

* Ready threads wait in a queue for each of four priorities, 0 the lowest, where a thread begins; the first of the highest gets a processor
  that becomes free.
* It pays a context switch (``dispatch``) first, unless it was itself the last on that processor.
* It may keep it for a quantum. Every end of a quantum lowers the priority of its thread by one, never below 0, and begins a new quantum; if
  a thread of the priority that is left or more is ready then, it takes the processor, and the loser goes to the end of its queue. Ends of
  quanta are counted only while another thread waits for the processor: those that passed before are made good when one begins to.
* A thread that an event wakes is raised at least to priority ``boost`` (1 on a system that favours what has waited, else 0) and, if that is
  higher than the running one's, takes its place at once; the one that loses its processor so keeps the rest of its quantum and goes to the
  front of its queue. The end of a sleep or of a timed wait raises nothing.
* A quantum is counted from the tick of the clock before it began (``quantum_at_tick``), and is then one tick at least, or from where it
  began. A wait begins a new one, or what is left outlives it (``quantum_carry``), less ``wait_charge`` for each wait.
* The kernel's work (interrupts, protocol stack) comes before any thread of processor 0, one piece after the other. Its thread stays there
  meanwhile, and loses time only.

A process waits in one of four ways (``policy.kind``), by its library:

* ``block``: without a processor, until an event wakes it.
* ``poll``: without a processor, in timed waits of ``period``. What wakes at once does; all else it finds at the end of a timed wait, which
  is a tick of the clock.
* ``spin``: with a processor, in a loop of polls of ``poll_cost`` each. It notices at the end of a poll; what came over a network it finds
  at every ``look_every``-th only.
* ``spin_yield``: the same, but after ``polls`` polls in vain it offers its processor to threads of its priority or more. If there is
  one, its quantum is over, as if it had ended.

``spec`` is the host's file: times in picoseconds, rates in bytes a second. ``memory`` (0 to 1) is the share of a burst of work in which it
waits for main memory, where processors slow each other (the chapter before this one). Events that a thread has scheduled carry its
``turn``: whatever happens to the thread in between begins another turn, and an event of an earlier one means nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Any

from retrompi.reference.loop import Abort, EventLoop
from retrompi.reference.memory import CopyCost, CopySide, copy_cost, slowdown
from retrompi.reference.values import Values, picoseconds

__all__ = ["Host", "Lock", "Steps", "Thread"]

Steps = Generator[None, None, None]
"""A process, or a part of what it does: it yields whenever time passes."""
PRIORITIES = 4
REFERENCE_CLOCK = 150e6
"""Hz of the host on which costs of libraries are stated (paper: BF-CFG-02)."""
REFERENCE_CALL = 4_000_000
"""Picoseconds of a null system call there (doc: E-LM-10)."""


class Lock:
    """One holder at a time. Those who wait are all signalled when it is given up, and the first of them to act takes it."""

    def __init__(self) -> None:
        self.held = False
        self._waiting: list[Thread] = []

    def take(self, thread: Thread) -> bool:
        """Whether it could be taken; otherwise the thread is told when to look again."""
        if self.held:
            self._waiting.append(thread)
            return False
        self.held = True
        return True

    def give(self) -> None:
        """Gives it up."""
        self.held = False
        waiting, self._waiting = self._waiting, []
        for thread in waiting:
            thread.signal()


class Thread:
    """A thread of the operating system."""

    def __init__(self, host: Host, name: str) -> None:
        self.host, self.name = host, name
        self.state = "blocked"  # or ready, running: where the scheduler has it
        self.mode = "work"  # or wait, sleep: what it asked for; a thread that has ended sleeps, and signals do not reach it; or dead
        self.main: Iterator[None] = iter(())
        self.policy: Values = None
        self.poll = 0
        self.signalled = False
        self.look_planned = False
        self.priority = 0
        self.core = -1
        self.pinned = -1
        self.switch = 0
        self.need = 0
        self.memory = 0.0
        self.slow = 1.0
        self.began = 0
        self.acting = False
        self.on_clock = False
        self.turn = 0
        self.armed = False
        self.quantum = 0
        self.quantum_left = 0
        self.quantum_end = 0
        self.wait_began = 0
        self.used = 0
        self.finished = False

    def processor_time(self) -> int:
        """What it has used of processors, up to now."""
        return self.used + (self.host.loop.now - self.began if self.on_clock else 0)

    # -- what a process asks for

    def run(self, ps: int, memory: float = 0.0) -> Steps:
        """Uses the processor for so long; ``memory`` is the share of it spent waiting for main memory."""
        if ps <= 0:
            return
        self.need, self.memory, self.mode = ps, memory if self.host.spec.cores > 1 else 0.0, "work"
        self.host.go(self)
        yield

    def copy(self, cost: CopyCost) -> Steps:
        """Uses the processor for a copy; `Process.copy` is this and the copy's turn on the bus."""
        yield from self.run(cost.core, cost.memory)

    def wait(self, policy: Values) -> Steps:
        """Waits for a signal, by one of the four ways. The caller then looks whether what it wants is there."""
        host = self.host
        self.policy = policy
        self.poll = host.work(policy.poll_cost) + host.service(policy.poll_call)
        self.signalled = self.look_planned = False
        self.mode = "wait"
        self.wait_began = host.loop.now
        self.need, self.memory = 0, 0.0
        if policy.kind in ("block", "poll"):
            host.release(self)
        else:
            host.go(self)
        yield

    def sleep(self, ps: int) -> Steps:
        """Sleeps for so long, and on to the next tick of the clock, as every timed wait."""
        host = self.host
        self.mode, self.need, self.memory = "sleep", 0, 0.0
        host.loop.schedule(host.next_tick(host.loop.now + ps), self.wakes, self.turn + 1)  # `release` begins that turn
        host.release(self)
        yield

    # -- what happens to it

    def signal(self, immediate: bool = True, network: bool = False) -> None:
        """Something has come for it. ``immediate``: the system wakes a thread that waits without a processor; otherwise it sees it when its
        timed wait ends. ``network``: a spinning thread looks there only now and then."""
        if self.mode != "wait":
            return
        host, again = self.host, self.signalled
        self.signalled = True
        match self.policy.kind:
            case "block":
                if not again:
                    host.wake(self)
            case "poll":
                if self.state != "blocked":
                    return
                if immediate:
                    host.wake(self)
                elif not self.look_planned:
                    # A timed wait ends at the first tick at which its period is over; the next one begins just after that tick, so that
                    # one of a whole number of ticks takes a tick more.
                    self.look_planned = True
                    tick, now = host.spec.tick, host.loop.now
                    due = host.next_tick(self.wait_began + self.policy.period)
                    step = (self.policy.period // tick + 1) * tick
                    if now > due:
                        due += (now - due + step - 1) // step * step
                    host.loop.schedule(due, self.wakes, self.turn)
            case "spin" | "spin_yield":
                if again:
                    return
                if self.state == "running":
                    self.signalled = False  # it has polled in vain until now
                    host.pause(self)
                    self.signalled = True
                    self.need = self._notice(network)
                    host.go(self)
                else:
                    self.need = self._notice(network)

    def _notice(self, network: bool) -> int:
        """The rest of the polling until it notices: one poll, or until its next look at the network."""
        if not network or self.policy.look_every <= 1:
            return self.poll
        round_: int = max(1, self.policy.look_every * self.poll)
        return round_ - (self.host.loop.now - self.wait_began) % round_

    def kill(self) -> None:
        """It is no more. What it holds, as the lock of a pool, is held for good."""
        if self.dead:
            return
        host, before = self.host, self.state
        if before == "running":
            host.pause(self)
        elif before == "ready":
            host.ready[self.priority].remove(self)
        self.turn += 1
        self.armed = self.signalled = False
        self.mode, self.state = "dead", "blocked"
        if before == "running":
            core, self.core = self.core, -1
            host.running[core] = None
            host.dispatch(core)

    @property
    def dead(self) -> bool:
        """Whether it was killed."""
        return self.mode == "dead"

    def finish(self, turn: int) -> None:
        """The processor time that it needed is over."""
        if turn == self.turn:
            self.host.pause(self)
            self.host.resume(self)

    def wakes(self, turn: int) -> None:
        """A timed wait or a sleep is over."""
        if turn != self.turn or self.state != "blocked":
            return
        self.turn += 1
        self.need = 0
        self.host.make_ready(self)

    def offers(self, turn: int) -> None:
        """It has polled so often in vain that it offers its processor to others."""
        if turn == self.turn and self.state == "running" and self.host.others_ready(self.priority, self.core):
            self.priority = max(0, self.priority - 1)
            self.host.preempt(self.core, to_front=False)

    def quantum_ends(self, quantum: int) -> None:
        """A quantum ends while another thread waits."""
        host = self.host
        if self.state != "running" or not self.armed or quantum != self.quantum:
            return
        self.armed = False
        self.priority = max(0, self.priority - 1)
        self.quantum_end = host.loop.now + host.quantum
        if host.others_ready(self.priority, self.core):
            host.preempt(self.core, to_front=False)
        elif host.others_ready(0, self.core):
            host.arm(self.core)

    @property
    def spins(self) -> bool:
        """Whether it polls for what has not come."""
        return self.mode == "wait" and not self.signalled

    def may_use(self, core: int) -> bool:
        """Whether it may run on this processor."""
        return self.pinned in (-1, core)


class Host:
    """One machine."""

    def __init__(self, loop: EventLoop, spec: Values, name: str, tick_phase: int) -> None:
        self.loop, self.spec, self.name, self.tick_phase = loop, spec, name, tick_phase
        self.quantum = max(spec.quantum, spec.tick) if spec.quantum_at_tick else spec.quantum
        self.running: list[Thread | None] = [None] * spec.cores
        self.last: list[Thread | None] = [None] * spec.cores
        self.ready: list[deque[Thread]] = [deque() for _ in range(PRIORITIES)]
        self.threads: list[Thread] = []
        self.bus_free = [0] * ((spec.cores - 1) // spec.package_cores + 1)
        self.kernel_jobs: deque[tuple[int, float, bool, Callable[..., None], tuple[Any, ...]]] = deque()
        self.kernel_busy = False
        self.kernel_need = self.kernel_began = self.kernel_turn = 0
        self.kernel_memory, self.kernel_slow = 0.0, 1.0

    # -- costs on this host

    def work(self, ps: int) -> int:
        """Work of a library, stated for the reference host: by clock and work a cycle."""
        return int(ps / (self.spec.clock * self.spec.work / REFERENCE_CLOCK) + 0.5)

    def service(self, ps: int) -> int:
        """A service of the operating system, stated for the reference host: systems differ in their services as in their null call."""
        return int(ps * (self.spec.syscall / REFERENCE_CALL) + 0.5)

    def calls(self, number: float) -> int:
        """So many null system calls, to whole picoseconds; the host's own figure, nothing is scaled."""
        return int(number * self.spec.syscall)

    def copy_cost(self, size: int, source: CopySide, target: CopySide, kin: str = "same") -> CopyCost:
        """`memory.copy_cost` here."""
        return copy_cost(self.spec, size, source, target, kin)

    def kinship(self, a: int, b: int) -> str:
        """What two cores share."""
        if a == b:
            return "same"
        return "cache" if a // self.spec.l2_shared_by == b // self.spec.l2_shared_by else "bus"

    def line(self, kin: str) -> int:
        """The transfer of a cache line that the other core has changed."""
        return int({"same": 0, "cache": self.spec.line_shared, "bus": self.spec.line_bus}[kin])

    def claim_bus(self, a: int, b: int, cost: CopyCost) -> int:
        """Books a copy on the front-side buses of two cores' packages, which take one after the other; the time at which its last byte has
        passed (`Process.copy` waits for it)."""
        if cost.bus <= 0:
            return self.loop.now
        end = 0
        for package in dict.fromkeys((a // self.spec.package_cores, b // self.spec.package_cores)):
            self.bus_free[package] = max(self.bus_free[package], self.loop.now) + picoseconds(cost.bus / self.spec.fsb_rate)
            end = max(end, self.bus_free[package])
        return end

    def next_tick(self, t: int) -> int:
        """The first tick of its clock at or after ``t``."""
        return self.tick_phase + int((t - self.tick_phase + self.spec.tick - 1) // self.spec.tick * self.spec.tick)

    # -- processors

    # At most one thread of each processor is ``acting``: its generator runs, in no time. One that is to lose its processor then loses it
    # when it has acted (`resume`).

    def start(self, thread: Thread, main: Iterator[None]) -> None:
        """A new thread is ready."""
        thread.main = main
        thread.quantum_left = self.quantum
        self.make_ready(thread)

    def go(self, t: Thread) -> None:
        """The running thread goes on, unless the kernel has its processor."""
        if t.core == 0 and self.kernel_busy:
            return
        self._start_clock(t)
        if t.memory > 0:
            self._reshare(t)

    def pause(self, t: Thread) -> None:
        """The running thread stops."""
        shares = t.on_clock and t.memory > 0
        self._stop_clock(t)
        if shares:
            self._reshare(t)

    def _start_clock(self, t: Thread) -> None:
        t.on_clock = True
        t.began = self.loop.now
        t.turn += 1
        if not t.spins:
            t.slow = self._slowdown(t.memory, t)
            need = int(t.need * t.slow + 0.5) if t.slow > 1 else t.need
            self.loop.schedule(self.loop.now + t.switch + need, t.finish, t.turn)
        elif t.policy.kind == "spin_yield" and self.others_ready(t.priority, t.core):
            self.loop.schedule(self.loop.now + t.switch + t.policy.polls * t.poll, t.offers, t.turn, passive=True)

    def _stop_clock(self, t: Thread) -> None:
        t.turn += 1
        if not t.on_clock:
            return
        t.on_clock = False
        used = self.loop.now - t.began
        t.used += used
        switched = min(used, t.switch)
        t.switch -= switched
        if not t.spins:
            done = used - switched
            t.need -= min(t.need, int(done / t.slow + 0.5)) if t.slow > 1 else done

    def resume(self, t: Thread) -> None:
        """What the thread needed is done: it acts."""
        t.mode = "work"
        t.acting = True
        ended: Abort | None = None
        try:
            next(t.main)
        except StopIteration:
            t.finished = True
        except Abort as abort:  # what ends the job gives its processor up first
            t.finished, ended = True, abort
        t.acting = False
        if t.finished:
            t.mode = "sleep"
            self.release(t)
            if ended:
                raise ended
        elif t.state == "running" and not (t.core == 0 and self.kernel_busy) and self.others_ready(t.priority + 1, t.core):
            self.preempt(t.core, to_front=True)

    def others_ready(self, priority: int, core: int) -> bool:
        """Whether a thread of this priority or a higher one waits for a processor."""
        return any(t.may_use(core) for queue in self.ready[priority:] for t in queue)

    def dispatch(self, core: int) -> None:
        """A free processor goes to the first thread that may use it."""
        if self.running[core] or (core == 0 and self.kernel_busy):
            return
        t = next((t for queue in reversed(self.ready) for t in queue if t.may_use(core)), None)
        if t is None:
            return
        self.ready[t.priority].remove(t)
        t.state, t.core = "running", core
        self.running[core] = t
        if self.last[core] is not t:
            t.switch = self.spec.dispatch
        self.last[core] = t
        # Where a quantum is counted in ticks, it began at the tick before.
        began = self.next_tick(self.loop.now + 1) - self.spec.tick if self.spec.quantum_at_tick else self.loop.now
        t.quantum_end = began + t.quantum_left
        t.armed = False
        self.go(t)
        if self.others_ready(0, core):
            self.arm(core)

    def arm(self, core: int) -> None:
        """A thread waits for this processor: from now on the quantum of its holder has an end."""
        t = self.running[core]
        if t is None:
            return
        if not t.armed:
            if t.quantum_end <= self.loop.now:  # quanta that ended while nobody waited
                ended = (self.loop.now - t.quantum_end) // self.quantum + 1
                t.quantum_end += ended * self.quantum
                t.priority = max(0, t.priority - ended)
            t.armed = True
            t.quantum += 1
            self.loop.schedule(t.quantum_end, t.quantum_ends, t.quantum, passive=True)
        if t.on_clock and t.spins and t.policy.kind == "spin_yield" and self.others_ready(t.priority, core):
            self.pause(t)
            self.go(t)

    def preempt(self, core: int, to_front: bool) -> None:
        """The holder of a processor loses it and stays ready: at the front of its queue with the rest of its quantum, or at the end with
        a new one."""
        t = self.running[core]
        assert t is not None
        self.pause(t)
        t.quantum_left = max(t.quantum_end - self.loop.now, 1) if to_front else self.quantum
        t.armed = False
        t.state, t.core = "ready", -1
        self.running[core] = None
        (self.ready[t.priority].appendleft if to_front else self.ready[t.priority].append)(t)
        self.dispatch(core)

    def make_ready(self, t: Thread) -> None:
        """A thread wants a processor: a free one, or that of the thread of the lowest priority if its own is higher."""
        t.state = "ready"
        self.ready[t.priority].append(t)
        cores = [c for c in range(self.spec.cores) if t.may_use(c)]
        for c in cores:
            if not self.running[c] and not (c == 0 and self.kernel_busy):
                self.dispatch(c)
                return
        held = [(r.priority, c, r) for c in cores if (r := self.running[c])]
        if held:
            low, core, holder = min(held, key=lambda h: h[:2])
            if low < t.priority:
                if not holder.acting:
                    self.preempt(core, to_front=True)
                return  # one that is acting loses it when it has acted
        for c in cores:
            self.arm(c)

    def wake(self, t: Thread) -> None:
        """A blocked thread becomes ready, with the system's boost."""
        t.priority = min(PRIORITIES - 1, max(t.priority, self.spec.boost))
        t.turn += 1
        t.need = 0
        self.make_ready(t)

    def release(self, t: Thread) -> None:
        """The running thread gives its processor up. Its quantum starts anew with the next, or what is left of it is kept, less
        ``wait_charge``."""
        self.pause(t)
        left = self.quantum
        if self.spec.quantum_carry:
            left = t.quantum_end - self.loop.now
            if left <= 0:
                left += (-left // self.quantum + 1) * self.quantum
            left -= self.spec.wait_charge
            if left <= 0:
                left = self.quantum
                t.priority = max(0, t.priority - 1)
        t.quantum_left = left
        t.armed = False
        core = t.core
        t.state, t.core = "blocked", -1
        self.running[core] = None
        self.dispatch(core)

    def could_act(self) -> bool:
        """Whether something other than polling is ready to run here: if nowhere and no event but passive ones is left, the loop calls it a
        deadlock."""
        first = self.running[0]
        if self._kernel_of_jobs() or (self.kernel_busy and first is not None and not first.spins):
            return True
        return any(t.state == "ready" and (t.mode != "wait" or t.signalled) for t in self.threads)

    # -- the kernel

    def kernel(self, ps: int, done: Callable[..., None], *arguments: Any, memory: float = 0.0, of_others: bool = False) -> None:
        """The kernel works for so long on processor 0, after what it has to do already, and then calls ``done``. ``of_others``: for no job
        that is simulated; alone it helps nobody on."""
        self.kernel_jobs.append((ps, memory if self.spec.cores > 1 else 0.0, of_others, done, arguments))
        if self.kernel_busy:
            return
        self.kernel_busy = True
        if self.running[0]:
            self.pause(self.running[0])
        self._start_kernel()

    def frame_interrupt(self) -> int:
        """What the interrupt of a frame takes that has come now: nothing where the driver polls and the kernel is at work."""
        return 0 if self.spec.napi and self.kernel_busy else int(self.spec.interrupt)

    def _kernel_of_jobs(self) -> bool:
        return not all(of_others for _, _, of_others, _, _ in self.kernel_jobs)

    def _start_kernel(self) -> None:
        self.kernel_need, self.kernel_memory = self.kernel_jobs[0][:2]
        self._start_kernel_clock()
        if self.kernel_memory > 0:
            self._reshare(None)

    def _start_kernel_clock(self) -> None:
        self.kernel_began = self.loop.now
        self.kernel_slow = self._slowdown(self.kernel_memory, None)
        need = int(self.kernel_need * self.kernel_slow + 0.5) if self.kernel_slow > 1 else self.kernel_need
        self.kernel_turn += 1
        self.loop.schedule(self.loop.now + need, self._kernel_done, self.kernel_turn, passive=not self._kernel_of_jobs())

    def _kernel_done(self, turn: int) -> None:
        if turn != self.kernel_turn:
            return
        if self.kernel_memory > 0:
            self.kernel_memory = 0.0
            self._reshare(None)
        _, _, _, done, arguments = self.kernel_jobs.popleft()
        done(*arguments)
        if self.kernel_jobs:
            self._start_kernel()
            return
        self.kernel_busy = False
        holder = self.running[0]
        if holder is None:
            self.dispatch(0)
        elif self.others_ready(holder.priority + 1, 0):
            self.preempt(0, to_front=True)
        else:
            self.go(holder)
            if self.others_ready(0, 0):
                self.arm(0)

    # -- processors that wait for the same memory

    def _slowdown(self, memory: float, own: Thread | None) -> float:
        if memory <= 0:
            return 1.0
        others = [t.memory for t in self.running if t and t is not own and t.on_clock and t.memory > 0]
        if own is not None and self.kernel_memory > 0:
            others.append(self.kernel_memory)
        return slowdown(memory, others, self.spec.mem_streams)

    def _reshare(self, own: Thread | None) -> None:
        """One has begun or ended to use the memory: all others whose speed changes go on with what is left at the new one."""
        for t in self.running:
            if t and t is not own and t.on_clock and t.memory > 0 and self._slowdown(t.memory, t) != t.slow:
                self._stop_clock(t)
                self._start_clock(t)
        if own is not None and self.kernel_memory > 0 and self._slowdown(self.kernel_memory, None) != self.kernel_slow:
            done = self.loop.now - self.kernel_began
            self.kernel_need -= min(self.kernel_need, int(done / self.kernel_slow + 0.5)) if self.kernel_slow > 1 else done
            self._start_kernel_clock()
