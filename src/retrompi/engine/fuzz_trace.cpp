// Fuzzing of the trace parser: whatever the bytes, the outcome is a trace or a TraceError.
//
// libFuzzer:  clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -DRETROMPI_LIBFUZZER fuzz_trace.cpp trace*.cpp -o fuzz
// elsewhere:  g++ -std=c++20 -g -O1 -fsanitize=address,undefined fuzz_trace.cpp trace*.cpp -o fuzz && ./fuzz -seconds=60 CORPUS...
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "trace.hpp"

namespace {

[[noreturn]] void broken(const char *what) {
  std::fprintf(stderr, "fuzz_trace: %s\n", what);
  std::abort();
}

void check(const retrompi::Trace &trace) {
  // A trace that was read must survive being written and read, and being sent to a worker.
  std::vector<std::string> texts;
  std::vector<retrompi::Source> sources;
  for (size_t r = 0; r < trace.ranks.size(); ++r) texts.push_back(trace.to_ti(r));
  for (size_t r = 0; r < texts.size(); ++r) sources.push_back({texts[r], "again", static_cast<int32_t>(r)});
  if (trace.refused_total == 0) {
    try {
      if (!(retrompi::parse(sources, {.ranks = 0, .partial = true}) == trace)) broken("a trace reads differently after to_ti");
    } catch (const retrompi::TraceError &e) {
      // A rank without lines is legal in a shared file and not in a file of its own.
      if (e.message.find("the file is empty") == std::string::npos) broken(e.what());
    }
  }
  if (!(retrompi::Trace::load(trace.dump()) == trace)) broken("a trace differs after dump and load");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  // Two of the first byte's bits choose how to read, the text stays readable for the fuzzer's dictionary.
  const uint8_t how = size == 0 ? 0 : data[0];
  const size_t half = text.rfind('\n', size / 2) == std::string_view::npos ? size : text.rfind('\n', size / 2) + 1;
  const std::vector<retrompi::Source> shared = {{text, "shared", -1}};
  const std::vector<retrompi::Source> pair = {{text.substr(0, half), "rank-0", 0}, {text.substr(half), "rank-1", 1}};
  for (const bool split : {false, true}) {
    try {
      using Undefined = retrompi::ReadOptions::Undefined;
      check(retrompi::parse(split ? pair : shared,
                            {.ranks = 0, .undefined_source = how % 2 != 0 ? Undefined::AnySource : Undefined::Refuse, .partial = how % 3 != 0}));
    } catch (const retrompi::TraceError &) {
    }
  }
  try {
    retrompi::Trace::load(text);
  } catch (const retrompi::TraceError &) {
  }
  return 0;
}

#ifndef RETROMPI_LIBFUZZER

namespace {

std::string slurp(const std::filesystem::path &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void run(const std::string &text) { LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(text.data()), text.size()); }

const char *const WORDS[] = {"send",      "recv",       "irecv",    "wait",          "waitall",  "bcast",    "gather",    "gatherv",
                             "alltoallv", "allgatherv", "scatterv", "reducescatter", "sendRecv", "# mark x", "init",      "finalize",
                             "compute",   "kernel",     "-333",     "-555",          "-444",     "-666",     "1e300",     "9223372036854775807",
                             "-1",        "nan",        "0x10",     "ibarrier",      "startall", "probe",    "4294967296",
                             "Put",       "Get",        "Accumulate", "Win_fence",    "Win_flush_all"};

// Without coverage feedback: bytes, numbers, words and lines of the corpus are changed, moved and cut.
std::string mutate(const std::vector<std::string> &corpus, std::mt19937_64 &random) {
  const auto pick = [&](size_t n) { return n == 0 ? 0 : static_cast<size_t>(random() % n); };
  std::string s = corpus[pick(corpus.size())];
  for (size_t i = 1 + pick(8); i > 0; --i) {
    const size_t at = pick(s.size() + 1);
    switch (pick(7)) {
      case 0:
        s.resize(at);
        break;
      case 1:
        if (at < s.size()) s[at] = static_cast<char>(random());
        break;
      case 2:
        s.insert(at, " " + std::string(WORDS[pick(std::size(WORDS))]) + " ");
        break;
      case 3:
        s.erase(at, 1 + pick(12));
        break;
      case 4: {
        const std::string &other = corpus[pick(corpus.size())];
        const size_t from = pick(other.size() + 1);
        s.insert(at, other, from, pick(200));
        break;
      }
      case 5:
        s.insert(at, 1, "0123456789 \n-.e#"[pick(16)]);
        break;
      default: {
        const size_t space = s.find(' ', at);
        if (space != std::string::npos) s.replace(space, 1 + pick(5), " " + std::string(WORDS[pick(std::size(WORDS))]) + " ");
      }
    }
  }
  return s;
}

}  // namespace

int main(int argc, char **argv) {
  double seconds = 0;
  std::vector<std::string> corpus = {"0 init\n0 send 1 0 8\n0 finalize\n1 init\n1 recv 0 0 8\n1 finalize\n"};
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg.starts_with("-seconds=")) {
      seconds = std::strtod(arg.c_str() + 9, nullptr);
    } else if (std::filesystem::is_directory(arg)) {
      for (const auto &entry : std::filesystem::recursive_directory_iterator(arg))
        if (entry.is_regular_file()) corpus.push_back(slurp(entry.path()));
    } else {
      corpus.push_back(slurp(arg));
    }
  }
  for (const std::string &text : corpus) run(text);
  // Long inputs are only run as they are: mutating them would be slow and find nothing else.
  std::vector<std::string> seeds;
  for (const std::string &text : corpus)
    if (text.size() < 20000) seeds.push_back(text);
  std::mt19937_64 random(1);
  size_t runs = corpus.size();
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds) {
    run(mutate(seeds, random));
    ++runs;
  }
  std::printf("fuzz_trace: %zu inputs, no fault\n", runs);
  return 0;
}

#endif
