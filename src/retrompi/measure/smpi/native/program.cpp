// Start, end and clock of a program; the computation between its calls; the result file.
#include <link.h>

#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <set>
#include <thread>

#include "calls.hpp"

namespace retrompi::online {

void* native_function(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (!found) refuse(std::string("this SimGrid has no ") + name);
  return found;
}

namespace {

int64_t cpu_time() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

FILE* results() {
  static FILE* file = [] {
    const char* path = std::getenv("RETROMPI_SMPI_RESULTS");
    FILE* f = path ? std::fopen(path, "w") : nullptr;
    if (path && !f) refuse(std::string(path) + " cannot be written");
    return f;
  }();
  return file;
}

void tell_collectives() {
  for (const coll::Table::Used& u : environment().collectives.used())
    report(std::string("collective ") + op_name(u.op) + " " + u.algorithm->name + " " + std::to_string(u.calls));
  report("messages " + std::to_string(counters().messages) + " " + std::to_string(counters().bytes));
}

/// What Fortran programs have written is in the buffers of their run-time library, of which each rank has a copy. A unit is locked while
/// its statement calls MPI (print *, MPI_Wtime()) or fails: hence threads, which are not waited for indefinitely.
void flush_fortran() {
  static std::set<void (*)(const int*)> flushes;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void*) {
        void* loaded = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
        void* found = loaded ? dlsym(loaded, "_gfortran_flush_i4") : nullptr;
        if (found) flushes.insert(reinterpret_cast<void (*)(const int*)>(found));
        return 0;
      },
      nullptr);
  static std::atomic<size_t> done{0};
  for (const auto flush : flushes)
    std::thread([flush] {
      flush(nullptr);
      ++done;
    }).detach();
  for (int ms = 0; ms < 500 && done < flushes.size(); ++ms) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void deadlock() {
  for (const Rank* r : everybody())
    if (r && !r->finished && !r->inside.empty()) report("wait " + std::to_string(r->id) + " " + r->inside + " " + r->waits_for());
  abort_run(Outcome::Deadlock, "no process can go on", 1);
}

}  // namespace

void report(const std::string& line) {
  if (FILE* f = results()) std::fprintf(f, "%s\n", line.c_str());
}

void abort_run(Outcome outcome, const std::string& reason, int code) {
  tell_collectives();
  report(std::string("outcome ") + outcome_name(outcome) + " " + std::to_string(code) + " " + reason);
  std::fflush(nullptr);
  flush_fortran();
  std::cerr << "retrompi smpi: " << outcome_name(outcome) << ": " << reason << std::endl;
  std::_Exit(code == 0 ? 1 : code);
}

Call::Call(const char* name) {
  Rank* r = self();
  if (!r || r->finished || !r->inside.empty()) return;
  rank_ = r;
  r->inside = name;
  if (r->told) return;
  r->pending += cpu_time() - r->clock;
  if (r->pending < kThreshold) return;
  r->use(static_cast<double>(r->pending));
  r->pending = 0;
}

Call::~Call() {
  if (!rank_) return;
  rank_->inside.clear();
  if (!rank_->told) rank_->clock = cpu_time();
}

/// The recorder reports what a rank has computed, in units of which a host performs `flops` a second; from then on nothing else measures it.
extern "C" __attribute__((visibility("default"))) void retrompi_smpi_compute(double amount) {
  Rank* r = self();
  if (!r || r->finished) return;
  r->told = true;
  r->pending = 0;
  if (amount > 0) r->use(amount);
}

/// A rank calls exit, or a Fortran program STOP: an end of the run before MPI_Finalize, as with a real launcher; otherwise the end of the rank.
extern "C" __attribute__((visibility("default"))) void retrompi_smpi_exit(int code) {
  const Rank* r = self();
  if (!r || r->finished) return;
  abort_run(Outcome::Failed, "rank " + std::to_string(r->id) + " ended with exit code " + std::to_string(code) + " before MPI_Finalize", code);
}

namespace {
constexpr int kFirstNumber = 1 << 20;  // above SMPI's own

void started() {
  int world = 0;
  NATIVE(Comm_rank)(MPI_COMM_WORLD, &world);
  Rank& r = enrol(world);
  on_end([&r] {
    if (!r.finished) abort_run(Outcome::Failed, "rank " + std::to_string(r.id) + " ended without MPI_Finalize", 1);
  });
  r.start();
  report("begin " + std::to_string(world) + " " + std::to_string(simulated().now().count()));
  static bool once = [] {
    on_deadlock(deadlock);
    if (const char* limit = std::getenv("RETROMPI_SMPI_LIMIT_PS"); limit && *limit)
      simulated().stop_after(std::strtoll(limit, nullptr, 10), [] { abort_run(Outcome::Timeout, "", 1); });
    number_communicators([](MPI_Comm comm) {
      Rank* r = self();
      return Gratis::depth > 0 && r ? kFirstNumber + r->next_number(comm) : -1;
    });
    return true;
  }();
  (void)once;
  r.clock = cpu_time();
}
}  // namespace

DEFINE(Init, (int* argc, char*** argv)) {
  const int rc = NATIVE(Init)(argc, argv);
  if (rc == MPI_SUCCESS && !self()) started();
  return rc;
}

// SimGrid's own calls MPI_Init.
DEFINE(Init_thread, (int* argc, char*** argv, int required, int* provided)) {
  const int rc = NATIVE(Init_thread)(argc, argv, required, provided);
  if (rc == MPI_SUCCESS && !self()) started();
  return rc;
}

DEFINE(Finalize, (void)) {
  if (const Call r("MPI_Finalize"); r) {
    report("reach " + std::to_string(r->id) + " " + std::to_string(simulated().now().count()));
    r->until([&r] { return r->settled(); });
    report("end " + std::to_string(r->id) + " " + std::to_string(simulated().now().count()));
    r->end();
    bool last = true;
    for (const Rank* each : everybody()) last = last && each && each->finished;
    if (last) {
      tell_collectives();
      report("outcome completed 0 ");
      if (FILE* f = results()) std::fflush(f);
    }
  }
  return NATIVE(Finalize)();
}

DEFINE(Abort, (MPI_Comm comm, int code)) {
  (void)comm;
  const Rank* r = self();
  abort_run(Outcome::Aborted, "MPI_Abort with code " + std::to_string(code) + (r ? " by rank " + std::to_string(r->id) : ""), code);
}

DEFINE(Pcontrol, (const int level, ...)) {
  if (const Call r("MPI_Pcontrol"); r)
    report("pcontrol " + std::to_string(r->id) + " " + std::to_string(level) + " " + std::to_string(simulated().now().count()));
  return MPI_SUCCESS;
}

extern "C" double PMPI_Wtime(void);
extern "C" __attribute__((alias("PMPI_Wtime"), visibility("default"))) double MPI_Wtime(void);
extern "C" __attribute__((visibility("default"))) double PMPI_Wtime(void) {
  if (const Call r("MPI_Wtime"); r) return to_s(simulated().now());
  return NATIVE(Wtime)();
}
extern "C" double PMPI_Wtick(void);
extern "C" __attribute__((alias("PMPI_Wtick"), visibility("default"))) double MPI_Wtick(void);
extern "C" __attribute__((visibility("default"))) double PMPI_Wtick(void) { return 1e-12; }

// ---------------------------------------------------------------- the other clocks, and sleep functions (smpicc renames them)

extern "C" __attribute__((visibility("default"))) unsigned int smpi_sleep(unsigned int seconds) {
  if (const Call r("sleep"); r) r->nap(seconds);
  return 0;
}

extern "C" __attribute__((visibility("default"))) int smpi_usleep(useconds_t us) {
  if (const Call r("usleep"); r) r->nap(us * 1e-6);
  return 0;
}

extern "C" __attribute__((visibility("default"))) int smpi_nanosleep(const timespec* t, timespec* rest) {
  if (const Call r("nanosleep"); r) r->nap(static_cast<double>(t->tv_sec) + static_cast<double>(t->tv_nsec) * 1e-9);
  if (rest) *rest = {};
  return 0;
}

namespace {
timespec simulated_time() {
  const Ps now = simulated().now();
  return {static_cast<time_t>(now / static_cast<Ps>(kPsPerSecond)), static_cast<long>(now % static_cast<Ps>(kPsPerSecond) / 1000)};
}
}  // namespace

extern "C" __attribute__((visibility("default"))) int smpi_gettimeofday(timeval* tv, struct timezone*) {
  const Call r("gettimeofday");
  const timespec t = simulated_time();
  if (tv) *tv = {t.tv_sec, t.tv_nsec / 1000};
  return 0;
}

extern "C" __attribute__((visibility("default"))) int smpi_clock_gettime(clockid_t, timespec* t) {
  const Call r("clock_gettime");
  *t = simulated_time();
  return 0;
}

}  // namespace retrompi::online
