#!/bin/sh
# The C++ parts under the address and undefined-behaviour sanitizers, with assertions on: the trace parser with mutated input, the unit
# tests (GoogleTest), and the engine.
# SECONDS_EACH (default 20) is how long the parser is fuzzed. Exit code 0: no fault.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
engine=$root/src/retrompi/engine
out=${RETROMPI_SANITIZE_DIR:-$root/build/sanitize}
mkdir -p "$out"
flags="-std=c++20 -g -O1 -fno-omit-frame-pointer -Wall -Wextra -fsanitize=address,undefined -fno-sanitize-recover=undefined -I$engine -I$out"
PYTHONPATH=$root/src python3 -S -m retrompi.spec.compiled.cpp "$out/generated/specs.hpp"
# SimGrid switches the stacks of its actors itself, which the check for returned stack frames takes for errors; what the
# engine and SimGrid keep until the process ends is no leak worth a report.
export ASAN_OPTIONS="detect_stack_use_after_return=0:detect_leaks=0:abort_on_error=0"
export UBSAN_OPTIONS="print_stacktrace=1"
simgrid=""
if [ -n "${SIMGRID_ROOT:-}" ]; then simgrid="-I$SIMGRID_ROOT/include -L$SIMGRID_ROOT/lib -Wl,-rpath,$SIMGRID_ROOT/lib"; fi

build() { # TARGET SOURCE...: what is older than its source or a header is compiled again, a file at a time on every core
  target=$out/$1
  shift
  objects=""
  stale=""
  for f in "$@"; do
    o=$out/$(echo "${f#"$root"/}" | tr / _).o
    objects="$objects $o"
    for h in "$f" "$engine"/*/*.hpp "$out"/generated/*.hpp "$root"/tests/cpp/*.hpp; do
      if [ ! -e "$o" ] || [ "$h" -nt "$o" ]; then
        stale="$stale $f $o"
        break
      fi
    done
  done
  if [ -n "$stale" ] || [ ! -e "$target" ]; then
    echo "building $(basename "$target")"
    # shellcheck disable=SC2086
    [ -z "$stale" ] || printf '%s\n' $stale | xargs -n 2 -P "$(nproc)" sh -c '"$0" $1 -c "$2" -o "$3"' "${CXX:-c++}" "$flags $simgrid"
    # shellcheck disable=SC2086
    ${CXX:-c++} $flags $simgrid $objects -o "$target" $libs
  fi
}

libs=""
build fuzz_trace "$engine"/trace/*.cpp
libs="-lsimgrid"
# shellcheck disable=SC2046
build engine_check "$root"/benchmarks/engine_check.cpp $(ls "$engine"/*/*.cpp | grep -v -e /bind/ -e /fuzz_)

libs="-lsimgrid -lgtest -lgtest_main"
# shellcheck disable=SC2046
build engine_unit "$root"/tests/cpp/*.cpp $(ls "$engine"/*/*.cpp | grep -v -e /bind/ -e /fuzz_)

"$out/engine_unit" --gtest_brief=1
"$out/fuzz_trace" "-seconds=${SECONDS_EACH:-20}"
"$out/engine_check"
for k in 0 1 2 3 4 5 6 7 8 9 10 11; do "$out/engine_check" network $k; done
for k in 0 2 6; do "$out/engine_check" network $k simgrid; done
