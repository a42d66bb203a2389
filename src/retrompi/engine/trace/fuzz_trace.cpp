// Fuzzing of the trace parser: whatever the bytes, the outcome is a trace or a TraceError.
//
// libFuzzer:  clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -DRETROMPI_LIBFUZZER -I.. -IBUILD fuzz_trace.cpp [!f]*.cpp -o fuzz
// elsewhere:  g++ -std=c++20 -g -O1 -fsanitize=address,undefined -I.. -IBUILD fuzz_trace.cpp [!f]*.cpp -o fuzz && ./fuzz -seconds=60 CORPUS...
// BUILD is a build's folder, which has generated/calls.hpp; benchmarks/sanitize.sh does the second.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>

#include "trace/trace.hpp"

namespace {

[[noreturn]] void broken(const char *what) {
  std::fprintf(stderr, "fuzz_trace: %s\n", what);
  std::abort();
}

void check(const retrompi::Trace &trace) {
  // A trace that was read must survive being written and read again, and being sent to a worker.
  std::vector<std::string> texts;
  std::vector<retrompi::Source> sources;
  for (size_t r = 0; r < trace.ranks.size(); ++r) texts.push_back(trace.to_ti(r));
  for (size_t r = 0; r < texts.size(); ++r) sources.push_back({texts[r], "again", static_cast<int32_t>(r)});
  if (trace.refused_total == 0) {
    try {
      if (!(retrompi::parse(sources, {.ranks = 0, .partial = true}) == trace)) broken("a trace reads differently after to_ti");
    } catch (const retrompi::TraceError &e) {
      // A rank without lines is legal in a shared file but not in a separate file.
      if (e.message.find("the file is empty") == std::string::npos) broken(e.what());
    }
  }
  if (!(retrompi::Trace::load(trace.dump()) == trace)) broken("a trace differs after dump and load");
}

// The same lines with 60 blanks behind them, which are then too long to be known when they come again (known_lines.hpp).
std::string padded(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out.append(text.substr(0, end)).append(60, ' ');
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// What is read, or why it is not.
std::string told(std::span<const retrompi::Source> sources, const retrompi::ReadOptions &options) {
  try {
    return retrompi::parse(sources, options).dump();
  } catch (const retrompi::TraceError &e) {
    return e.what();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  // Two bits of the first byte choose how to read; the text stays readable for the fuzzer's dictionary.
  const uint8_t how = size == 0 ? 0 : data[0];
  const size_t half = text.rfind('\n', size / 2) == std::string_view::npos ? size : text.rfind('\n', size / 2) + 1;
  const std::vector<retrompi::Source> shared = {{text, "shared", -1}};
  const std::vector<retrompi::Source> pair = {{text.substr(0, half), "rank-0", 0}, {text.substr(half), "rank-1", 1}};
  const std::string long_text = padded(text), long_pair[] = {padded(pair[0].text), padded(pair[1].text)};
  const std::vector<retrompi::Source> long_shared = {{long_text, "shared", -1}};
  const std::vector<retrompi::Source> long_files = {{long_pair[0], "rank-0", 0}, {long_pair[1], "rank-1", 1}};
  for (const bool split : {false, true}) {
    using Undefined = retrompi::ReadOptions::Undefined;
    const retrompi::ReadOptions options = {
        .ranks = 0, .undefined_source = how % 2 != 0 ? Undefined::AnySource : Undefined::Refuse, .partial = how % 3 != 0};
    if (told(split ? pair : shared, options) != told(split ? long_files : long_shared, options))
      broken("lines read differently when they come again");
    try {
      check(retrompi::parse(split ? pair : shared, options));
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

// Numbers, and attributes of the extension; beside them every word of the table.
const char *const OTHERS =
    "-333 -555 -444 -666 1e300 9223372036854775807 -1 nan 0x10 4294967296 comm=1 comm=2 comm=99 req=1 req=2 req=4294967296 reqs=1,2 reqs=none "
    "reqs=2 done=1 done=none flag=1 flag=0 from=0 from=1:0 mtag=5 mtag=1:5 stag=3 rtag=-444 win=1 dims=2x1 dims=1x1x1x1 periods=1x0 in=0 "
    "out=none 0-1 1-0 0-1:2 0,1 0-4294967295 0-1000000000 -777 =";

std::vector<std::string> vocabulary() {
  std::vector<std::string> words = {"# mark x"};
  std::istringstream others(OTHERS);
  for (std::string word; others >> word;) words.push_back(word);
  for (const retrompi::Word &word : retrompi::WORDS) words.emplace_back(word.name);
  return words;
}

// One line of each kind in the extension, on two ranks of one file.
std::string extended() {
  std::string out;
  for (const char *const r : {"0", "1"}) {
    const std::string me = r, other = me == "0" ? "1" : "0";
    for (const std::string &line : std::vector<std::string>{"init",
                                                            "comm_split 1 0-1",
                                                            "comm_dup 2 0,1 comm=1",
                                                            "cart_create 3 0-1 dims=2x1 periods=1x0",
                                                            "graph_create 4 1-0 comm=2 in=0,1 out=0,1",
                                                            "comm_create_group 5 0-1 comm=2",
                                                            "comm_split " + std::string(me == "0" ? "6 0" : "7 1"),
                                                            "intercomm_create 8 " + me + " " + other + " comm=" + (me == "0" ? "6" : "7"),
                                                            "intercomm_merge 9 1,0 comm=8",
                                                            "comm_dup 10 " + me + " comm=8",
                                                            "bcast 8 " + std::string(me == "0" ? "-777" : "0") + " 6 comm=10",
                                                            "ibcast 8 1 6 comm=1 req=1",
                                                            "wait req=1",
                                                            "comm_split -1",
                                                            "irecv -555 -444 8 6 req=1 comm=2",
                                                            "isend " + other + " 5 8 6 req=2 comm=2",
                                                            "waitall 2 reqs=1,2 from=1:" + other + " mtag=1:5",
                                                            "recvInit -555 3 8 6 req=1",
                                                            "sendInit " + other + " 3 8 6 req=2",
                                                            "startall 2 reqs=1,2",
                                                            "waitany 2 reqs=1,2 done=1 from=1:" + other,
                                                            "testsome 1 reqs=2 done=none",
                                                            "testall 1 reqs=2 flag=1",
                                                            "start req=1",
                                                            "test req=1 flag=1 from=0 mtag=3",
                                                            "requestFree req=1",
                                                            "sendRecv 8 " + other + " 8 -555 6 6 stag=4 rtag=-444 from=" + other + " mtag=4",
                                                            "iprobe -555 -444 flag=0",
                                                            "probe -555 5 from=0",
                                                            "recv -555 -444 8 6 from=1 mtag=2",
                                                            "neighbor_alltoallv 2 2 3 4 2 2 5 1 comm=3",
                                                            "neighbor_allgatherv 8 8 8 0 0 comm=4",
                                                            "ineighbor_alltoallw 5 5 5 5 comm=4 req=3",
                                                            "alltoallw 3 3 3 3 comm=9",
                                                            "reducescatterblock 8 1e3 6",
                                                            "ireducescatter 1 2 0 6 req=4",
                                                            "waitall reqs=3,4",
                                                            "win_create 1 1000 comm=2",
                                                            "Win_fence win=1",
                                                            "Put 1 0 10 6 win=1",
                                                            "Rget 1 0 10 6 win=1 req=9",
                                                            "wait req=9",
                                                            "Fetch_and_op 0 0 8 6 win=1",
                                                            "Win_lock 1 1 win=1",
                                                            "Win_flush 1 win=1",
                                                            "Win_unlock 1 win=1",
                                                            "Win_lock_all win=1",
                                                            "Win_unlock_all win=1",
                                                            "Win_post 1,0 win=1",
                                                            "Win_start 0-1 win=1",
                                                            "Win_complete win=1",
                                                            "Win_wait win=1",
                                                            "Win_flush_local_all win=1",
                                                            "win_free 1",
                                                            "comm_free comm=2",
                                                            "finalize"})
      out += me + " " + line + "\n";
  }
  return out;
}

// Without coverage feedback: bytes, numbers, words and lines of the corpus are changed, moved and cut.
std::string mutate(const std::vector<std::string> &corpus, std::mt19937_64 &random) {
  static const std::vector<std::string> words = vocabulary();
  const auto pick = [&](size_t n) { return n == 0 ? 0 : static_cast<size_t>(random() % n); };
  std::string s = corpus[pick(corpus.size())];
  for (size_t i = 1 + pick(8); i > 0; --i) {
    const size_t at = pick(s.size() + 1);
    switch (pick(11)) {
      case 8:
      case 9: {  // a line comes again, several times
        const size_t from = at == 0 ? 0 : s.rfind('\n', at - 1) + 1;
        const size_t end = s.find('\n', at);
        if (end == std::string::npos) break;
        const std::string line = s.substr(from, end + 1 - from);
        for (size_t n = 1 + pick(3); n > 0; --n) s.insert(s.find('\n', from + pick(s.size() - from)) + 1, line);
        break;
      }
      case 0:
        s.resize(at);
        break;
      case 1:
        if (at < s.size()) s[at] = static_cast<char>(random());
        break;
      case 2:
        s.insert(at, " " + words[pick(words.size())] + " ");
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
      case 6:
      case 7: {  // a line is deleted or moved
        const size_t from = at == 0 ? 0 : s.rfind('\n', at - 1) + 1;
        const size_t end = s.find('\n', at);
        if (end == std::string::npos) break;
        const std::string line = s.substr(from, end + 1 - from);
        s.erase(from, line.size());
        if (pick(2) == 0) break;
        const size_t to = s.find('\n', pick(s.size() + 1));
        s.insert(to == std::string::npos ? s.size() : to + 1, line);
        break;
      }
      case 5:
        s.insert(at, 1, "0123456789 \n-.e#=,:x"[pick(20)]);
        break;
      default: {
        const size_t space = s.find(' ', at);
        if (space != std::string::npos) s.replace(space, 1 + pick(5), " " + words[pick(words.size())] + " ");
      }
    }
  }
  return s;
}

}  // namespace

int main(int argc, char **argv) {
  double seconds = 0;
  std::vector<std::string> corpus = {"0 init\n0 send 1 0 8\n0 finalize\n1 init\n1 recv 0 0 8\n1 finalize\n", extended()};
  retrompi::Trace whole;
  try {
    const std::string text = extended();
    whole = retrompi::parse(std::vector<retrompi::Source>{{text, "extended", -1}});
  } catch (const retrompi::TraceError &e) {
    broken(e.what());
  }
  if (whole.refused_total != 0) broken("the example of the extension is refused");
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
  // Long inputs are only run unchanged: mutating them would be slow and find nothing new.
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
