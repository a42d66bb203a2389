// The memory limit of the packed actions of all traces, and the temporary file for those beyond it.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "trace/trace.hpp"

namespace retrompi {

namespace {

uint64_t initial_limit() {
  const char *text = std::getenv("RETROMPI_TRACE_MEMORY");
  if (text == nullptr || *text == 0) return TraceMemory::kDefault;
  char *end = nullptr;
  const unsigned long long v = std::strtoull(text, &end, 10);
  return *end == 0 ? v : TraceMemory::kDefault;
}

std::atomic<uint64_t> g_limit{initial_limit()}, g_held{0}, g_spilled{0};
std::mutex g_spill_lock;
std::weak_ptr<ActionList::File> g_spill;

std::string folder() {
  const char *name = std::getenv("TMPDIR");
  return name != nullptr && *name != 0 ? name : "/tmp";
}

[[noreturn]] void file_error(const std::string &what) {
  throw TraceError("trace", 0,
                   what + " the temporary file in " + folder() + ": " + std::strerror(errno) +
                       "; name a folder with more room in TMPDIR, or more memory (bytes) in RETROMPI_TRACE_MEMORY");
}

}  // namespace

uint64_t TraceMemory::limit() { return g_limit; }
void TraceMemory::set_limit(uint64_t bytes) { g_limit = bytes; }
uint64_t TraceMemory::held() { return g_held; }
uint64_t TraceMemory::spilled() { return g_spilled; }
bool TraceMemory::has_space(uint64_t bytes) { return g_held + bytes <= g_limit; }
void TraceMemory::hold(uint64_t bytes) { g_held += bytes; }
void TraceMemory::release(uint64_t bytes) { g_held -= bytes; }

ActionList::File::~File() {
  if (owner_ != 0) g_spilled -= end_;
  ::close(fd_);
}

ActionList::File::File(const std::string &path, bool make)
    : fd_(::open(path.c_str(), make ? O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC : O_RDONLY | O_CLOEXEC, 0600)) {
  if (fd_ < 0) file_error("cannot open");
  if (!make) end_ = static_cast<uint64_t>(::lseek(fd_, 0, SEEK_END));
}

std::shared_ptr<ActionList::File> ActionList::File::temporary() {
  std::string path = folder() + "/retrompi-trace-XXXXXX";
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) file_error("cannot open");
  ::unlink(path.c_str());
  auto f = std::make_shared<File>(fd);
  f->owner_ = ::getpid();
  return f;
}

uint64_t ActionList::File::append(std::string_view bytes) {
  const uint64_t at = end_;
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) file_error("no more of the trace can be written to");
    done += static_cast<size_t>(n);
  }
  end_ += bytes.size();
  if (owner_ != 0) g_spilled += bytes.size();
  return at;
}

void ActionList::File::read(uint64_t offset, size_t size, std::string &out) const {
  out.resize(size);
  for (size_t done = 0; done < size;) {
    const ssize_t n = ::pread(fd_, out.data() + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;
    if (n <= 0) file_error("cannot read the trace back from");
    done += static_cast<size_t>(n);
  }
}

std::pair<std::shared_ptr<ActionList::File>, uint64_t> ActionList::File::spill(std::string_view bytes) {
  const std::lock_guard guard(g_spill_lock);
  std::shared_ptr<File> file = g_spill.lock();
  if (!file || file->owner() != ::getpid()) g_spill = file = File::temporary();
  return {file, file->append(bytes)};
}

}  // namespace retrompi
