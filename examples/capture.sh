#!/usr/bin/env bash
# Compile an MPI C program with SimGrid's SMPI and trace it: a folder with index.txt and one rank-K.txt a rank.
#
#   examples/capture.sh [-n RANKS] [-k] SOURCE.c OUTPUT [ARGUMENT...]
#
#   -n RANKS  processes, one a simulated node (default 2)
#   -k        keep computation: by default the time between MPI calls is left out, because in a communication benchmark it is
#             only the tracer's own (1-3 us a call), which a slow simulated processor would amplify
#
#   examples/capture.sh examples/pingpong.c build/pingpong-trace --scale 0.1
#
# The sections of a program (MPI_Pcontrol) are lost; `retrompi trace record --smpi` keeps them.
set -euo pipefail

usage() { sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
fail() { echo "capture.sh: $*" >&2; exit 2; }

ranks=2
keep=no
while getopts "n:kh" option; do
  case $option in
    n) ranks=$OPTARG ;;
    k) keep=yes ;;
    *) usage ;;
  esac
done
shift $((OPTIND - 1))
[ $# -ge 2 ] || usage
source=$1
output=$2
shift 2
[[ $ranks =~ ^[1-9][0-9]*$ ]] || fail "-n must be a number of ranks, not '$ranks'"
[ -r "$source" ] || fail "no such source file: $source"
[ ! -e "$output" ] || [ -z "$(ls -A "$output")" ] || fail "$output exists and is not empty"
for tool in smpicc smpirun; do
  command -v "$tool" >/dev/null || fail "$tool was not found; Debian and Ubuntu: apt-get install libsimgrid-dev"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# SMPI 3.32 ends a program that calls MPI_Pcontrol ("not yet implemented"); its tracer would not write it anyway.
echo 'int MPI_Pcontrol(const int level, ...) { return (void)level, 0; }' >"$work/pcontrol.c"
smpicc -O2 "$source" "$work/pcontrol.c" -lm -o "$work/program"

# What was asked of MPI does not depend on the platform, as long as the program does not look at the clock to decide.
cat >"$work/platform.xml" <<XML
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="capture" prefix="node" suffix="" radical="0-$((ranks - 1))" speed="1Gf" bw="12.5MBps" lat="50us"/>
</platform>
XML
for ((k = 0; k < ranks; k++)); do echo "node$k"; done >"$work/hostfile"

# host-speed 1e9: with -k an amount of computation is the nanoseconds of processor time it took here.
options=(--cfg=smpi/host-speed:1e9)
[ "$keep" = yes ] || options+=(--cfg=smpi/simulate-computation:no)
(cd "$work" && smpirun -np "$ranks" -platform platform.xml -hostfile hostfile -trace-ti --cfg=tracing/filename:trace "${options[@]}" \
  --log=root.thresh:error ./program "$@")

mkdir -p "$output"
k=0
while IFS= read -r file; do # SMPI's index lists the ranks' files in order
  [[ $file = /* ]] || file=$work/$file
  mv "$file" "$output/rank-$k.txt"
  echo "rank-$k.txt"
  k=$((k + 1))
done <"$work/trace" >"$output/index.txt"
[ "$k" -eq "$ranks" ] || fail "SMPI traced $k ranks instead of $ranks"
echo "capture.sh: $output: $ranks ranks, $(cat "$output"/rank-*.txt | wc -l) lines" >&2
